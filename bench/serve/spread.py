"""Order statistics, and the speeds that they are taken of."""
from dataclasses import dataclass


def quantile(values, share):
    """The value below which `share` of the values lie, with linear interpolation between neighbours."""
    if not values:
        raise ValueError("expected at least one value, found none")
    if not 0 <= share <= 1:
        raise ValueError(f"expected a share of 0..1, found {share}")
    ordered = sorted(values)
    place = share * (len(ordered) - 1)
    below = int(place)
    above = min(below + 1, len(ordered) - 1)
    return ordered[below] + (place - below) * (ordered[above] - ordered[below])


@dataclass(frozen=True)
class Spread:
    """Median and quartiles of `n` values."""
    n: int
    low: float
    median: float
    high: float


def spread(values):
    return Spread(len(values), quantile(values, 0.25), quantile(values, 0.5), quantile(values, 0.75))


def ratios(ours, theirs):
    """Ratios of values that were taken side by side."""
    if len(ours) != len(theirs):
        raise ValueError(f"expected pairs, found {len(ours)} values and {len(theirs)}")
    return [our / their for our, their in zip(ours, theirs)]
