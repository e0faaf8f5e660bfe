"""What a run has to show in the end: that nothing grew, and that the server counted what the clients saw."""
from dataclasses import dataclass

from spread import quantile

LONG_S = 600      # runs below are too short to tell growth from noise
N_POINTS = 120    # that a slope is taken of


@dataclass(frozen=True)
class Check:
    """A line of the report."""
    what: str
    found: str
    expected: str
    is_right: bool


def points(times, values, n=N_POINTS):
    """At most `n` points: the medians of times and values in runs of equal length."""
    pairs = [(time, value) for time, value in zip(times, values, strict=True) if value is not None]
    n = min(n, len(pairs))
    runs = [pairs[i * len(pairs) // n:(i + 1) * len(pairs) // n] for i in range(n)]
    return [(quantile([time for time, _ in run], 0.5), quantile([value for _, value in run], 0.5)) for run in runs]


def slope(pairs):
    """The median of the slopes between all pairs of points (Theil and Sen): a few wild points do not move it."""
    found = [(value - before) / (time - start) for i, (start, before) in enumerate(pairs)
             for time, value in pairs[i + 1:] if time > start]
    return quantile(found, 0.5) if found else 0.0


def growth(times, values):
    """(What grew over the second half by that slope, the median there.)"""
    middle = (times[0] + times[-1]) / 2
    late = [(time, value) for time, value in zip(times, values, strict=True) if time >= middle]
    found = points(*zip(*late))
    median = quantile([value for _, value in found], 0.5)
    return slope(found) * (times[-1] - middle), median


# What may grow over the second half of a run: a part of the median, and so much more.
BOUNDS = {"rss_mib": ("resident memory", "MiB", 0.05, 8), "descriptors": ("open descriptors", "", 0.1, 4),
          "threads": ("threads", "", 0, 0.5), "health_ms": ("time of GET /health", "ms", 0.5, 50),
          "probe_ms": ("time of an answer of one token", "ms", 0.5, 250)}

LATENCIES = ("health_ms", "probe_ms")
SLOWER = 0.2   # growth of the yardstick that tells of other programs


def growth_checks(samples):
    times = [sample["s"] for sample in samples]
    slower, usual = growth(times, [sample["yardstick_ms"] for sample in samples])
    for name, (what, unit, part, more) in BOUNDS.items():
        grown, median = growth(times, [sample[name] for sample in samples])
        most = part * median + more
        found = f"{grown:.2f} {unit}".strip() + f", median {median:.1f}"
        if name in LATENCIES and slower > SLOWER * usual:
            found += "; not judged, because other programs slowed this machine"
            most = max(most, grown)
        yield Check(f"{what}: growth over the second half", found, f"at most {most:.1f} {unit}".strip(), grown <= most)


@dataclass(frozen=True)
class Sum:
    """A counter of /metrics, with the least and the most that fit what clients saw."""
    what: str
    counted: float
    least: float
    most: float

    def check(self):
        expected = f"{self.least:.0f}" if self.least == self.most else f"{self.least:.0f} to {self.most:.0f}"
        return Check(f"/metrics: {self.what}", f"{self.counted:.0f}", expected, self.least <= self.counted <= self.most)


def parse_metrics(text):
    """The samples of a page in Prometheus' text format, by name and labels."""
    lines = (line.rsplit(" ", 1) for line in text.splitlines() if line and not line.startswith("#"))
    return {name: float(value) for name, value in lines}


def labelled(metrics, name, label):
    """The samples of a name by the value of one of their labels."""
    found = {}
    for full, value in metrics.items():
        if full.startswith(name + "{"):
            found[full.split(f'{label}="', 1)[1].split('"', 1)[0]] = value
    return found


def sums(metrics, seen, n_ctx):
    """Every counter that clients can count as well. An answer whose client left may or may not have begun, and ended."""
    left = seen.n_left
    refused = {int(status): n for status, n in labelled(metrics, "knap:requests_refused_total", "code").items()}
    for status in sorted(refused.keys() | seen.refused.keys()):
        least = seen.refused.get(status, 0)
        yield Sum(f"refusals with {status}", refused.get(status, 0), least, least + seen.unsure_of(status))
    ended = labelled(metrics, "vllm:request_success_total", "finished_reason")
    for reason in sorted(ended.keys() | seen.ended.keys()):
        least = seen.ended.get(reason, 0)
        yield Sum(f"answers that ended with {reason}", ended.get(reason, 0), least, least + (0 if reason == "error" else left))
    yield Sum("answers", sum(ended.values()), sum(seen.ended.values()), sum(seen.ended.values()) + left)
    for what, name, least in (("tokens of prompts computed", "llamacpp:prompt_tokens_total", seen.n_prompt - seen.n_cached),
                              ("tokens of prompts from the cache", "llamacpp:prompt_tokens_cached_total", seen.n_cached),
                              ("tokens generated", "llamacpp:tokens_predicted_total", seen.n_generated)):
        yield Sum(what, metrics[name], least, least + left * n_ctx)
    yield Sum("clients that left", metrics["knap:disconnects_total"], 0, seen.n_left_requests)
    yield Sum("answers under way at the end", metrics["llamacpp:requests_processing"], 0, 0)
    yield Sum("answers that wait at the end", metrics["llamacpp:requests_deferred"], 0, 0)
