"""KnapSpec's Table 1 at the costs of this engine: computed, not measured. Joins the acceptance rates that the paper prints
(docs/results/data/paper-table1.json, which says where each number comes from and which are assumed) with the times of passes
that shape_bench measured. docs/tables.py turns the functions at the end into tables of docs/results/paper-projection.md.

A round that drafts g tokens, of which the share A is accepted, writes 1 + A * g tokens and takes g draft steps and a pass of
g + 1 rows. What the paper does not print is how long drafts are and which modules KnapSpec skips: see draft_lengths(),
draft_share(), SAME_SHARE and ATTENTION_FIRST."""
import json
import re
from pathlib import Path

import bench_data as data
from bench_data import median
from bench_tables import markdown, modules_of, number, percent, tokens

PAPER = Path(__file__).resolve().parent / "results/data/paper-table1.json"
WINDOW = "a=w16+1024"
PARTS = ("full", "a=skip", "m=skip", WINDOW)  # draft steps that give the parts of a layer
PLAIN = "AR"


def interpolate(points, x, what):
    """The value at x on the lines between `points` (a dict)."""
    below = [at for at in points if at <= x]
    above = [at for at in points if at >= x]
    if not below or not above:
        raise ValueError(f"expected {what} from {min(points)} to {max(points)}, found {x}")
    low, high = max(below), min(above)
    return points[low] if low == high else points[low] + (points[high] - points[low]) * (x - low) / (high - low)


class Parts:
    """The times of a row of shape_bench, in milliseconds: passes by rows and layers, and the parts of a draft step."""

    def __init__(self, row):
        self.n_layers = row["n_layers"]
        self.passes, self.drafts = {}, {}
        for name, times in row["times_ms"].items():
            ms = median(times) / row["n_tokens"]
            if found := re.fullmatch(r"(\d+) rows?, (\d+) layers?", name):
                self.passes.setdefault(int(found[1]), {})[int(found[2])] = ms
            else:
                self.drafts[name.removeprefix("draft, ")] = ms
        full, no_attention, no_mlp, window = (self.drafts[plan] for plan in PARTS)
        self.attention = (full - no_attention) / self.n_layers
        self.mlp = (full - no_mlp) / self.n_layers
        self.window = self.attention - (full - window) / self.n_layers
        self.head = full - self.n_layers * (self.attention + self.mlp)

    def whole_pass(self, n_rows, n_layers):
        """The line through the fewest and the most layers that were timed, at `n_layers`."""
        by_layers = self.passes[n_rows]
        first, last = min(by_layers), max(by_layers)
        return by_layers[first] + (by_layers[last] - by_layers[first]) * (n_layers - first) / (last - first)

    def line_errors(self):
        """How far the line through the two fewest layers is from the time of the most, for each number of rows."""
        for by_layers in self.passes.values():
            first, second, *_, last = sorted(by_layers)
            predicted = by_layers[first] + (by_layers[second] - by_layers[first]) * (last - first) / (second - first)
            yield abs(predicted / by_layers[last] - 1)

    def draft(self, n_layers, no_attention=0.0, no_mlp=0.0, windows=0.0):
        """A draft step that skips these shares of its attentions and MLPs, and narrows the share `windows` of attentions."""
        layer = ((1 - no_attention - windows) * self.attention + windows * self.window + (1 - no_mlp) * self.mlp)
        return self.head + n_layers * layer

    def plan_errors(self):
        """How far the parts are from the draft steps that they were not taken from."""
        for plan, ms in self.drafts.items():
            if plan not in PARTS:
                share = {kind: n / self.n_layers for kind, n in modules_of(plan, self.n_layers).items()}
                yield abs(self.draft(self.n_layers, share["a"], share["m"], share["w"]) / ms - 1)


class Costs:
    """The passes of one model, by context."""

    def __init__(self, rows, n_layers):
        self.parts = {row["depth"]: Parts(row) for row in rows}
        self.n_layers = n_layers

    def at(self, context, value):
        return interpolate({depth: value(parts) for depth, parts in self.parts.items()}, context, "a context")

    def verification(self, n_rows, context):
        return self.at(context, lambda parts: interpolate(
            {rows: parts.whole_pass(rows, self.n_layers) for rows in parts.passes}, n_rows, "rows of a pass"))

    def step(self, context):
        return self.verification(1, context)

    def draft(self, context, **shares):
        return self.at(context, lambda parts: parts.draft(self.n_layers, **shares))


def draft_lengths(acceptance, cap):
    """How probable each draft length is, if a draft ends with its first rejected token or at the cap: the best that a rule for
    ending drafts can do. The share of drafted tokens that are accepted is then `acceptance`, as the paper counts it."""
    return {n: acceptance ** (n - 1) * (1 - acceptance if n < cap else 1) for n in range(1, cap + 1)}


def speed(costs, context, draft_ms, acceptance, cap, search_share):
    """Tokens per time over plain decoding, with drafts that end as in draft_lengths()."""
    n_tokens, ms = 0, 0
    for n, probability in draft_lengths(acceptance, cap).items():
        n_tokens += probability * (1 + acceptance * n)
        ms += probability * (n * draft_ms + costs.verification(n + 1, context))
    return n_tokens * costs.step(context) * (1 - search_share) / ms


def speed_with_best_length(costs, context, draft_ms, acceptance, cap, search_share):
    """The same with drafts of one length, the best up to the cap, each token accepted like every other."""
    def at(n):
        n_tokens = sum(acceptance ** i for i in range(n + 1))
        return n_tokens * costs.step(context) / (n * draft_ms + costs.verification(n + 1, context))
    return max(at(n) for n in range(1, cap + 1)) * (1 - search_share)


def best_predicted(acceptance, share, cap):
    """The paper's prediction over plain decoding: a draft step costs `share` of a pass, a verification one pass."""
    return max(sum(acceptance ** i for i in range(n + 1)) / (1 + n * share) for n in range(1, cap + 1))


def draft_share(acceptance, predicted, cap):
    """The cost of a draft step over a pass, at the paper's costs, with which its formula gives the prediction that it prints."""
    low, high = 0.0, 1.0
    for _ in range(50):
        middle = (low + high) / 2
        low, high = (middle, high) if best_predicted(acceptance, middle, cap) > predicted else (low, middle)
    return low


class Paper:
    def __init__(self, path=PAPER):
        file = json.loads(path.read_text())
        self.models, self.contexts = file["models"], file["data_sets"]
        self.caps, self.budget, self.profile = file["draft_cap"], file["knapspec_budget"], file["profile"]
        self.search_shares = file["search_shares"]
        self.cells = {(row["shape"], row["data"], row["method"]): row for row in file["rows"]}

    def data_sets(self, shape):
        return [data_set for of_shape, data_set, method in self.cells if of_shape == shape and method == PLAIN]

    def search_share(self, shape, method):
        return self.models[shape]["knapspec_search_share"] if method == "KnapSpec" else self.search_shares[method]

    def attention_share(self, context):
        """Of a layer's time, at the paper's costs."""
        attention = self.profile["c2"] * context + self.profile["c3"]
        return attention / (attention + self.profile["c1"])

    def saved_share(self, shape, data_set):
        """Of a pass's time, at the paper's costs, that a draft step of KnapSpec leaves out: at most half, its budget. More would
        follow from some predictions, whose acceptance was estimated higher than the one that the paper measured."""
        cell, plain = self.cells[shape, data_set, "KnapSpec"], self.cells[shape, data_set, PLAIN]
        return min(self.budget, 1 - draft_share(cell["acceptance"], cell["tpt"] / plain["tpt"], self.caps["KnapSpec"]))


# What KnapSpec skips, as shares of attentions and MLPs, so that the paper's costs fall by the share that it saves there. The
# paper prints no shares of modules; it says that the share of attentions grows with the context.
def same_share(paper, shape, data_set, _):
    saved = paper.saved_share(shape, data_set)
    return {"no_attention": saved, "no_mlp": saved}


def attention_first(paper, shape, data_set, context):
    saved, of_attention = paper.saved_share(shape, data_set), paper.attention_share(context)
    n_layers = paper.models[shape]["n_layers"]
    skipped = min(saved / of_attention, (n_layers - 2) / n_layers)  # the first and the last layer always run
    return {"no_attention": skipped, "no_mlp": max(0, saved - skipped * of_attention) / (1 - of_attention)}


SAME_SHARE, ATTENTION_FIRST = "the same share of both", "attentions first"
CHOICES = {SAME_SHARE: same_share, ATTENTION_FIRST: attention_first}


def other_shares(paper, shape, method):
    """What the other methods skip."""
    model = paper.models[shape]
    n_layers = model["n_layers"]
    share = {"CLaSp": model["clasp_skipped_layers"] / n_layers,
             "DEL": 1 - model["del_exit_layer"] / n_layers,
             "SWIFT": int(2 * (n_layers - 2) * model["swift_skipped_share"]) / (2 * n_layers)}[method]
    return {"no_attention": share, "no_mlp": share}


def projected(paper, costs, shape, data_set, method, shares, context=None, model=speed):
    """The speed of a cell of the table on this engine."""
    context = context or paper.contexts[data_set]
    return model(costs, context, costs.draft(context, **shares), paper.cells[shape, data_set, method]["acceptance"],
                 paper.caps[method], paper.search_share(shape, method))


def with_windows(shares):
    """The same with a window for every attention that is left."""
    return {**shares, "windows": 1 - shares["no_attention"]}


def costs_of(files, paper):
    """Costs by (shape, weight type), in the order of the paper's models."""
    rows = {}
    for row in (row for file in files for row in data.rows_of(file, "shape")):
        rows.setdefault((row["shape"], row["type"]), []).append(row)
    return {key: Costs(rows[key], model["n_layers"]) for shape, model in paper.models.items() for key in rows if key[0] == shape}


def spread_text(files):
    widest = max(data.spread(times) for file in files for row in data.rows_of(file, "shape")
                 for times in row["times_ms"].values())
    return f"Half the distance between the quartiles of a time is at most {percent(widest, 1)} of it"


def gain_text(label, values):
    return f"in {sum(value > 1 for value in values)} of {len(values)} cells with {label}"


def speeds(files, weight_type):
    paper = Paper()
    table, gains = [], {}
    for (shape, of_type), costs in costs_of(files, paper).items():
        if of_type != weight_type:
            continue
        for data_set in paper.data_sets(shape):
            context = paper.contexts[data_set]
            cells = [paper.models[shape]["name"], data_set, tokens(context)]
            for method in ("DEL", "SWIFT", "CLaSp"):
                cells += [number(paper.cells[shape, data_set, method]["speedup"]),
                          number(projected(paper, costs, shape, data_set, method, other_shares(paper, shape, method)))]
            cells.append(number(paper.cells[shape, data_set, "KnapSpec"]["speedup"]))
            for name, choice in CHOICES.items():
                shares = choice(paper, shape, data_set, context)
                for label, its in ((name, shares), (f"{name} and windows", with_windows(shares))):
                    value = projected(paper, costs, shape, data_set, "KnapSpec", its)
                    gains.setdefault(label, []).append(value)
                    cells.append(number(value))
            table.append(cells)
    head = ["model", "data set", "context", "DEL: paper", "computed", "SWIFT: paper", "computed", "CLaSp: paper", "computed",
            "KnapSpec: paper", "computed, the same share of both", "with windows", "computed, attentions first", "with windows"]
    text = (f"Computed speed over plain decoding, {weight_type} weights. KnapSpec gains "
            + ", ".join(gain_text(label, values) for label, values in gains.items()) + f". {spread_text(files)}")
    return markdown(head, table), text


def speeds_f16(files):
    """shape_bench and the paper's Table 1: speed of each method over plain decoding, F16 weights."""
    return speeds(files, "F16")


def speeds_q4_k_m(files):
    """shape_bench and the paper's Table 1: speed of each method over plain decoding, Q4_K_M weights."""
    return speeds(files, "Q4_K_M")


def contexts(files):
    """shape_bench and the paper's Table 1: KnapSpec by context, and with drafts of one length."""
    paper = Paper()
    table = []
    all_costs = costs_of(files, paper)
    depths = sorted(set.intersection(*(set(costs.parts) for costs in all_costs.values())))
    for (shape, weight_type), costs in all_costs.items():
        cells = [paper.models[shape]["name"], weight_type]
        for choose in (lambda shares: shares, with_windows):
            for depth in depths:
                cells.append(number(mean_speed(paper, costs, shape, choose, depth)))
        cells += [number(mean_speed(paper, costs, shape, choose, model=speed_with_best_length))
                  for choose in (lambda shares: shares, with_windows)]
        table.append(cells)
    head = ["model", "weights", *(f"{tokens(depth)} tokens" for depth in depths),
            *(f"{tokens(depth)}, with windows" for depth in depths), "best fixed draft length", "with windows"]
    return markdown(head, table), ("Computed speed of KnapSpec over plain decoding, the same share of both modules: geometric "
                                   f"means over the model's data sets. {spread_text(files)}")


def mean_speed(paper, costs, shape, choose, context=None, model=speed):
    values = [projected(paper, costs, shape, data_set, "KnapSpec",
                        choose(same_share(paper, shape, data_set, context)), context, model)
              for data_set in paper.data_sets(shape)]
    return data.geometric_mean(values)[0]


def pass_costs(files):
    """shape_bench: passes of whole models from those of a few layers, and how far the line is off."""
    paper = Paper()
    table = []
    for (shape, weight_type), its in costs_of(files, paper).items():
        n_rows = sorted(next(iter(its.parts.values())).passes)[1:]
        line_error = max(error for parts in its.parts.values() for error in parts.line_errors())
        plan_error = max(error for parts in its.parts.values() for error in parts.plan_errors())
        for depth in dict.fromkeys((min(its.parts), max(its.parts))):
            parts, step, draft = its.parts[depth], its.step(depth), its.draft(depth)
            of_draft = [its.n_layers * ms / draft for ms in (parts.attention, parts.window, parts.mlp)] + [parts.head / draft]
            table.append([paper.models[shape]["name"], weight_type, tokens(depth), number(step),
                          *(number(its.verification(n, depth) / step) for n in n_rows), number(draft / step),
                          *map(percent, of_draft), percent(line_error, 1), percent(plan_error, 1)])
    head = ["model", "weights", "context", "step, ms", *(f"{n} rows / step" for n in n_rows), "whole draft step / step",
            "attentions of a draft step", "the same with windows", "MLPs", "head and the rest", "line off by", "parts off by"]
    counts = sorted({row["n_layers"] for file in files for row in data.rows_of(file, "shape")})
    return markdown(head, table), (f"Times of {'/'.join(map(str, counts))} layers and the head, extended to all layers. "
                                   f"{spread_text(files)}")
