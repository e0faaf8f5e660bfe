#!/usr/bin/env python3
"""Draws decoding speed against context length, knap and libllama, as SVG.

    docs/chart.py docs/results/data/cpu-context-*.json -o docs/pictures/speed.svg

writes speed-light.svg and speed-dark.svg. Takes files of `knap bench --peer llama` (one for each length, or one with
several depths), or a file of decode_bench."""
import argparse
import math
import sys
from html import escape
from pathlib import Path

sys.dont_write_bytecode = True
import bench_data as data  # noqa: E402
from bench_data import DataError, median, quantile  # noqa: E402

WIDTH, HEIGHT = 800, 420
LEFT, RIGHT, TOP, BOTTOM = 64, 168, 84, 62
FONT = "-apple-system, 'Segoe UI', 'Noto Sans', Helvetica, Arial, sans-serif"

# Colours with enough contrast on GitHub's light and dark backgrounds.
THEMES = {
    "light": {"text": "#1f2328", "quiet": "#59636e", "grid": "#d1d9e0", "knap": "#0969da", "knapspec": "#1a7f37",
              "libllama": "#bc4c00"},
    "dark": {"text": "#f0f6fc", "quiet": "#9198a1", "grid": "#3d444d", "knap": "#4493f8", "knapspec": "#3fb950",
             "libllama": "#f0883e"},
}
LABELS = {"knap": "knap", "knapspec": "knap, speculative", "libllama": "libllama"}


class Point:
    """Tokens per second at a context length, and the ends of its spread."""

    def __init__(self, length, speed, low, high):
        self.length, self.speed, self.low, self.high = length, speed, low, high


def race_series(file):
    """Medians and quartiles of runs."""
    series = {"knap": [], "libllama": []}
    for row in data.rows_of(file, "decode"):
        for name, times in (("knap", row["times_ms"]["knap"]), ("libllama", data.best_peer(row))):
            speeds = [1000 * row["n_tokens"] / time for time in times]
            series[name].append(Point(row["depth"], median(speeds), quantile(speeds, 0.25), quantile(speeds, 0.75)))
    return series


def bench_series(files):
    """Geometric means and 95 % intervals over prompts."""
    names = {data.PLAIN: "knap", "knapspec": "knapspec", data.PEER: "libllama"}
    series = {}
    for length, rows in data.context_groups(files):
        for strategy, name in names.items():
            speeds = [row["tokens_per_second"] for row in rows if row["strategy"] == strategy]
            if speeds:
                mean, low, high = data.geometric_mean(speeds)
                series.setdefault(name, []).append(Point(length, mean, low or mean, high or mean))
    return series


def series_of(files):
    """Points by name: "knap" and "libllama", and "knapspec" where it was measured."""
    if all(data.is_bench(file) for file in files):
        series = bench_series(files)
    elif len(files) == 1:
        series = race_series(files[0])
    else:
        raise DataError("chart: expected one file of decode_bench or several of knap bench, found both")
    if not {"knap", "libllama"} <= series.keys() or any(len(points) < 2 for points in series.values()):
        raise DataError("chart: expected knap and libllama at two lengths or more, found fewer")
    return series


def round_step(span, n_steps):
    """A round distance that divides `span` into about `n_steps`."""
    step = 10 ** len(str(int(span / n_steps)))
    return next(step * factor for factor in (0.1, 0.2, 0.25, 0.5, 1) if span / (step * factor) <= n_steps)


class Axes:
    def __init__(self, series):
        points = [point for one in series.values() for point in one]
        # Room for the ratios. A wide spread does not flatten the lines: it is cut off at the top.
        highest = min(max(point.high for point in points), 1.4 * max(point.speed for point in points)) * 1.08
        self.y_step = round_step(highest, 6)
        self.y_max = self.y_step * math.ceil(highest / self.y_step)
        longest = max(point.length for point in points)
        self.x_step = next(step for step in (128, 512, 1024, 2048, 4096, 8192, 16384, 32768)
                           if longest / step <= 8 or step == 32768)
        self.x_max = longest * 1.02

    def x(self, length):
        return LEFT + (WIDTH - LEFT - RIGHT) * length / self.x_max

    def y(self, speed):
        return HEIGHT - BOTTOM - (HEIGHT - TOP - BOTTOM) * min(speed / self.y_max, 1)


def text(x, y, words, color, size=13, anchor="start", weight="normal"):
    weight = "" if weight == "normal" else f' font-weight="{weight}"'
    anchor = "" if anchor == "start" else f' text-anchor="{anchor}"'
    return f'<text x="{x:.1f}" y="{y:.1f}" fill="{color}" font-size="{size}"{anchor}{weight}>{escape(words)}</text>'


def line(x1, y1, x2, y2, color, width=1.0):
    return (f'<line x1="{x1:.1f}" y1="{y1:.1f}" x2="{x2:.1f}" y2="{y2:.1f}" stroke="{color}" '
            f'stroke-width="{width:g}"/>')


def drawn_axes(axes, theme, spread_name):
    parts = []
    for i in range(round(axes.y_max / axes.y_step) + 1):
        y = axes.y(i * axes.y_step)
        parts.append(line(LEFT, y, WIDTH - RIGHT, y, theme["grid"]))
        parts.append(text(LEFT - 8, y + 4.5, f"{i * axes.y_step:g}", theme["quiet"], anchor="end"))
    length = 0
    while length <= axes.x_max:
        label = f"{length // 1024}K" if length >= 1024 else str(length)
        parts.append(line(axes.x(length), axes.y(0), axes.x(length), axes.y(0) + 5, theme["grid"]))
        parts.append(text(axes.x(length), axes.y(0) + 20, label, theme["quiet"], anchor="middle"))
        length += axes.x_step
    parts.append(text((LEFT + WIDTH - RIGHT) / 2, HEIGHT - 16, f"tokens of context; bars: {spread_name}", theme["quiet"],
                      anchor="middle"))
    return parts


def drawn_series(name, points, axes, theme):
    color = theme[name]
    parts = []
    for point in points:
        parts.append(line(axes.x(point.length), axes.y(point.low), axes.x(point.length), axes.y(point.high), color, 2))
        parts.append(f'<circle cx="{axes.x(point.length):.1f}" cy="{axes.y(point.speed):.1f}" r="3.5" fill="{color}"/>')
    path = " ".join(f"{axes.x(point.length):.1f},{axes.y(point.speed):.1f}" for point in points)
    parts.insert(0, f'<polyline points="{path}" fill="none" stroke="{color}" stroke-width="2.5" '
                    'stroke-linejoin="round"/>')
    return parts


def label_places(series, axes):
    """Heights of the labels at the right end, moved apart where they would touch."""
    ends = sorted((axes.y(points[-1].speed), name) for name, points in series.items())
    places, least = {}, 0.0
    for y, name in ends:
        places[name] = max(y, least)
        least = places[name] + 34
    return places


def ratio(points, peer):
    """"3.1 times libllama", or a range, over the lengths that both have."""
    speeds = {point.length: point.speed for point in peer}
    ratios = [point.speed / speeds[point.length] for point in points if point.length in speeds]
    low, high = f"{min(ratios):.1f}", f"{max(ratios):.1f}"
    return low if low == high else f"{low} to {high}"


def drawn_ratios(points, peer, axes, theme):
    """Above each point, its ratio to libllama's speed, beside the bar."""
    speeds = {point.length: point.speed for point in peer}
    parts = []
    for point in points:
        if point.length in speeds:
            is_last = point is points[-1]  # whose right is the label's
            parts.append(text(axes.x(point.length) + (-5 if is_last else 5), axes.y(point.speed) - 8,
                              f"{point.speed / speeds[point.length]:.1f}×", theme["text"],
                              anchor="end" if is_last else "start"))
    return parts


def described(series):
    """The numbers in words, for screen readers."""
    return ". ".join(f"{LABELS[name]}: " + ", ".join(f"{point.speed:.0f} tokens per second after {point.length} tokens"
                                                     for point in points) for name, points in series.items()) + "."


def draw(files, theme_name):
    series = series_of(files)
    theme, axes = THEMES[theme_name], Axes(series)
    best = "knapspec" if "knapspec" in series else "knap"
    title = f"{LABELS[best]}: {ratio(series[best], series['libllama'])} times the speed of libllama"
    model = data.models(files[0])[0].removesuffix(".gguf")
    source = f"Decoding, tokens per second. {model}, {data.machine(files[0])}"
    spread_name = "95 % intervals over prompts" if data.is_bench(files[0]) else "quartiles of runs"
    parts = [text(LEFT - 40, 30, title, theme["text"], 18, weight="600"),
             text(LEFT - 40, 54, source, theme["quiet"]), *drawn_axes(axes, theme, spread_name)]
    for name, points in series.items():
        parts += drawn_series(name, points, axes, theme)
    parts += drawn_ratios(series[best], series["libllama"], axes, theme)
    for name, y in label_places(series, axes).items():
        x = WIDTH - RIGHT + 12
        parts.append(text(x, y + 1, LABELS[name], theme[name], 14, weight="600"))
        parts.append(text(x, y + 18, f"{series[name][-1].speed:.0f} tokens/s", theme["quiet"], 12))
    body = "\n".join(parts)
    return (f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT}" width="{WIDTH}" height="{HEIGHT}" '
            f'role="img" aria-labelledby="title desc" font-family="{FONT}">\n'
            f'<title id="title">{escape(title)}</title>\n<desc id="desc">{escape(described(series))}</desc>\n'
            f"{body}\n</svg>\n")


def main():
    parser = argparse.ArgumentParser(description="Draws decoding speed against context length")
    parser.add_argument("files", nargs="+", type=Path, help="data files: decode_bench --json, or knap bench")
    parser.add_argument("-o", dest="output", type=Path, required=True, help="NAME.svg: NAME-light.svg, NAME-dark.svg")
    options = parser.parse_args()
    try:
        files = [data.load(path) for path in options.files]
        for theme in THEMES:
            options.output.with_name(f"{options.output.stem}-{theme}.svg").write_text(draw(files, theme))
    except DataError as error:
        print(f"chart: error: {error}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
