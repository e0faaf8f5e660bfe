"""Compares ratios with those that were stored for the same kind of machine."""
import json
import re
from dataclasses import asdict, dataclass
from pathlib import Path

from measure import MeasureError, Ratio

FLOOR = 0.05     # smaller changes are never called one
TOO_NOISY = 0.2  # a spread from which on little can be told


@dataclass(frozen=True)
class Line:
    """A ratio now and as it was stored; either may be missing."""
    name: str
    now: Ratio | None
    stored: Ratio | None

    @property
    def change(self):
        """Relative to the stored one; None when there is nothing to compare."""
        return self.now.median / self.stored.median - 1 if self.now and self.stored else None

    @property
    def noise(self):
        return max(FLOOR, self.now.spread + self.stored.spread)

    @property
    def verdict(self):
        if self.change is None:
            return "not stored" if self.now else "not measured"
        if abs(self.change) > self.noise:
            return "slower" if self.change < 0 else "faster"
        return "noisy" if self.noise > TOO_NOISY else ""


def compared(now, stored):
    return [Line(name, now.get(name), stored.get(name)) for name in [*now, *(name for name in stored if name not in now)]]


def slug(setting):
    """The name of the file for a kind of machine, such as amd-epyc-avx512-2-threads.json."""
    words = [re.sub(r"\((r|tm)\)", "", setting["cpu"].lower()), setting["isa"], f"{setting['threads']}-threads"]
    return re.sub(r"[^a-z0-9]+", "-", " ".join(words)).strip("-") + ".json"


def read(path):
    """The stored setting and ratios; None without a file."""
    try:
        data = json.loads(Path(path).read_text())
        return data, {name: Ratio(**ratio) for name, ratio in data["ratios"].items()}
    except FileNotFoundError:
        return None
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise MeasureError(f"{path}: expected ratios that `make bench-quick BENCH_QUICK_ARGS=--store` wrote: {error}") from None


def stored_for(folder, setting):
    """The ratios of this kind of machine and model; None if there are none."""
    path = Path(folder) / slug(setting)
    found = read(path)
    if found is None:
        return None
    data, ratios = found
    for name, value in setting.items():
        if data.get(name) != value:
            raise MeasureError(f"{path}: expected `{name}` {value!r}, found {data.get(name)!r}: measured in another way")
    return ratios


def described(setting, knap, ratios):
    """What is stored."""
    return {"format": 1, **setting, "knap": knap, "ratios": {name: asdict(ratio) for name, ratio in ratios.items()}}


def text(ratio):
    return f"{ratio.median:.2f} ±{100 * ratio.spread:.0f} %" if ratio else ""


def table(lines):
    rows = [("ratio", "now", "stored", "change", "noise", "")]
    for line in lines:
        has_both = line.change is not None
        rows.append((line.name, text(line.now), text(line.stored), f"{100 * line.change:+.0f} %" if has_both else "",
                     f"{100 * line.noise:.0f} %" if has_both else "", line.verdict))
    widths = [max(len(row[i]) for row in rows) for i in range(len(rows[0]))]
    return "\n".join("  ".join(cell.ljust(width) for cell, width in zip(row, widths)).rstrip() for row in rows)


def summary(lines):
    """(Exit status, one line.)"""
    slower = [line.name for line in lines if line.verdict == "slower"]
    faster = [line.name for line in lines if line.verdict == "faster"]
    missing = [line.name for line in lines if line.verdict == "not measured"]
    if missing:
        return 1, f"not measured any more: {'; '.join(missing)}"
    if slower:
        return 1, f"slower beyond noise: {'; '.join(slower)}"
    return 0, f"nothing became slower beyond noise{'; faster: ' + '; '.join(faster) if faster else ''}"
