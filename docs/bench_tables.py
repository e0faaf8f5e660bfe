"""Markdown tables of benchmark files (bench_data.py). Each function takes the files and returns the table and a text on
the spread of its numbers."""
import bench_data as data
from bench_data import PEER, PLAIN, median, spread

# Strategies as tables name them.
NAMES = {PLAIN: "plain decoding, again", PEER: "libllama, plain decoding"}


def markdown(head, rows):
    """A table; `head` and each row are lists of cells."""
    lines = [head, ["---"] * len(head), *rows]
    return "\n".join("| " + " | ".join(line) + " |" for line in lines)


def number(value, digits=2):
    return "-" if value is None else f"{value:.{digits}f}"


def percent(value, digits=0):
    return "-" if value is None else f"{100 * value:.{digits}f} %"


def rate(value):
    """Tokens per second, to three digits or more."""
    return f"{value:,.0f}" if value >= 100 else f"{value:.1f}"


def interval(speedup):
    mean, low, high = speedup
    return number(mean) if low is None else f"{mean:.2f} ({low:.2f}-{high:.2f})"


def quartiles(ratios):
    """The median of paired ratios, with its quartiles where there are several."""
    if len(ratios) == 1:
        return number(ratios[0])
    return f"{median(ratios):.2f} ({data.quantile(ratios, 0.25):.2f}-{data.quantile(ratios, 0.75):.2f})"


def tokens(n):
    return f"{n:,}"


def plural(n, word):
    return f"{n} {word}{'s' * (n != 1)}"


def span(values):
    low, high = min(values), max(values)
    return tokens(low) if low == high else f"{tokens(low)} to {tokens(high)}"


def runs_text(ratios):
    """The number of runs and the spread of paired ratios (a list for each ratio), for a caption."""
    counts = sorted({len(values) for values in ratios})
    if counts == [1]:
        return "One run each"
    count = str(counts[0]) if len(counts) == 1 else f"{counts[0]} to {counts[-1]}"
    widest = max(spread(values) for values in ratios if len(values) > 1)
    return (f"Medians of {count} runs in turn; half the distance between the quartiles of a ratio is at most "
            f"{percent(widest, 1)} of it")


def race_label(row):
    return f"{'reading a prompt of' if row['what'] == 'prefill' else 'decoding after'} {tokens(row['depth'])} tokens"


def race_ratios(row):
    """knap / libllama, run by run."""
    return data.paired_ratios(data.best_peer(row), row["times_ms"]["knap"])


def race_rows(file):
    """Rows of decode_bench, decoding first."""
    return data.rows_of(file, "decode") + [row for row in file["rows"] if row["what"] == "prefill"]


def race_table(all_rows):
    rows = []
    for row in all_rows:
        speeds = [1000 * row["n_tokens"] / median(times) for times in (row["times_ms"]["knap"], data.best_peer(row))]
        rows.append([race_label(row), *map(rate, speeds), quartiles(race_ratios(row))])
    text = ("libllama runs with the faster of its two flash attention settings; quartiles of the ratio in brackets. "
            + runs_text([race_ratios(row) for row in all_rows]))
    return markdown(["tokens per second", "knap", "libllama", "knap / libllama"], rows), text


def race_by_length(files):
    """decode_bench: plain decoding and prompt processing, knap and libllama, a row for each length."""
    [file] = files
    return race_table(race_rows(file))


def race(files):
    """decode_bench: plain decoding and prompt processing, knap and libllama, at the shortest and longest length."""
    [file] = files
    by_kind = {}
    for row in race_rows(file):
        by_kind.setdefault(row["what"], []).append(row)
    ends = []
    for rows in by_kind.values():
        rows = sorted(rows, key=lambda row: row["depth"])
        ends += rows if len(rows) < 2 else [rows[0], rows[-1]]
    return race_table(ends)


def verify(files):
    """verify_bench: the cost of verifying N rows relative to one row."""
    all_rows = [row for file in files for row in data.rows_of(file, "verify")]
    head = [name for name in all_rows[0]["times_ms"] if name != "1"]
    rows, every_ratio = [], []
    for row in all_rows:
        one = row["times_ms"]["1"]
        ratios = [data.paired_ratios(row["times_ms"][name], one) for name in head]
        every_ratio += ratios
        rows.append([f"{row['model']}, {row['cache']} cache", tokens(row["depth"]), f"{median(one):.2f} ms",
                     *(number(median(values)) for values in ratios)])
    return markdown(["model", "context", "1 row", *(f"{name} rows" for name in head)], rows), runs_text(every_ratio)


def draft(files):
    """draft_bench: the cost of a draft step relative to a step of the whole model, by plan and context."""
    [file] = files
    by_depth = data.rows_of(file, "draft")
    whole, *plans = by_depth[0]["times_ms"]
    rows = [[f"{whole}, ms", *(f"{median(row['times_ms'][whole]) / row['n_tokens']:.2f}" for row in by_depth)]]
    every_ratio = []
    for plan in plans:
        ratios = [data.paired_ratios(row["times_ms"][plan], row["times_ms"][whole]) for row in by_depth]
        every_ratio += ratios
        rows.append([plan, *(number(median(values)) for values in ratios)])
    head = ["draft with", *(f"after {tokens(row['depth'])} tokens" for row in by_depth)]
    return markdown(head, rows), runs_text(every_ratio)


def device(files):
    """device_bench: passes of one and several rows, knap and libllama, and draft steps; a row per model and depth."""
    all_rows = [row for file in files for row in data.rows_of(file, "device")]
    sizes = [name.removeprefix("knap, ") for name in all_rows[0]["times_ms"] if name.startswith("knap, ")]
    drafts = [name for name in all_rows[0]["times_ms"] if name.startswith("draft, ")][1:]
    head = ["model", "context"]
    for size in sizes:
        head += [f"{size}: knap, ms", "libllama, ms", "ratio"]
    rows, every_ratio = [], []
    for row in all_rows:
        cells = [row["model"], tokens(row["depth"])]
        times = row["times_ms"]
        for size in sizes:
            ours, peer = times[f"knap, {size}"], times.get(f"llama, {size}")
            ratios = data.paired_ratios(peer, ours) if peer else None
            every_ratio += [ratios] if ratios else []
            cells += [number(median(ours) / row["n_tokens"]), number(median(peer) / row["n_tokens"] if peer else None),
                      number(median(ratios) if ratios else None)]
        for name in drafts:
            ratios = data.paired_ratios(times[name], times["draft, whole model"])
            every_ratio.append(ratios)
            cells.append(number(median(ratios)))
        rows.append(cells)
    head += [f"{name} / a whole step" for name in drafts]
    return markdown(head, rows), "The ratio is libllama / knap. " + runs_text(every_ratio)


def device_plain(files):
    """device_bench: plain decoding, knap and libllama; a row per model and depth."""
    rows, every_ratio = [], []
    for row in (row for file in files for row in data.rows_of(file, "device")):
        ours, peer = row["times_ms"]["knap, one row"], row["times_ms"]["llama, one row"]
        ratios = data.paired_ratios(peer, ours)
        every_ratio.append(ratios)
        rows.append([row["model"], tokens(row["depth"]), *(number(median(times) / row["n_tokens"]) for times in (ours, peer)),
                     number(median(ratios))])
    head = ["model", "context", "knap, ms per token", "libllama, ms per token", "knap / libllama, speed"]
    return markdown(head, rows), runs_text(every_ratio)


def rows_in(files):
    return [row for file in files for row in file["rows"]]


def shortest_prompts_first(files):
    return sorted(files, key=lambda file: median([row["n_prompt"] for row in file["rows"]]))


def request(rows, strategy):
    """The mean speed of whole requests, and its interval. `rows` has the rows of plain decoding too."""
    return data.geometric_mean(data.request_speedups(rows, strategy))


def search_share(rows):
    turns = [turn for row in rows for turn in row["turns"]]
    return sum(turn["search_ms"] for turn in turns) / sum(turn["decode_ms"] for turn in turns)


def of_strategy(rows, strategy):
    return [row for row in rows if row["strategy"] == strategy]


def strategies_of(rows):
    """Strategies in the order of the rows."""
    return list(dict.fromkeys(row["strategy"] for row in rows))


def named(strategy, rows):
    name = NAMES.get(strategy, f"`{strategy}`")
    return f"{name} (projected)" if any(row["is_projection"] for row in of_strategy(rows, strategy)) else name


def prompts_text(rows):
    """The spread of rows of `knap bench`, for a caption: intervals, and plain decoding against itself."""
    turns = sorted({len(row["turns"]) for row in rows})
    n_prompts = len({data.prompt_key(row) for row in rows})
    text = (f"Geometric means with 95 % intervals over prompts; {plural(n_prompts, 'prompt')}, "
            f"{'/'.join(map(str, turns))} turn{'s' * (turns != [1])} each")
    control = of_strategy(rows, PLAIN)
    if control:
        text += f"; plain decoding against itself: {interval(data.summary(control)['speedup'])}"
    is_projection = any(row["is_projection"] for row in rows)
    if not is_projection and not any(row["first_difference"] for row in rows):
        text += "; every text is identical to that of plain decoding"
    return text


def strategies(files):
    """knap bench: a row for each strategy over all prompts."""
    all_rows = rows_in(files)
    rows = []
    for strategy in strategies_of(all_rows):
        its = of_strategy(all_rows, strategy)
        total = data.summary(its)
        rows.append([named(strategy, all_rows), interval(total["speedup"]),
                     interval(request(all_rows, strategy)), number(total["lowest"]),
                     rate(total["tokens_per_second"]), percent(total["acceptance_rate"]),
                     number(total["mean_accepted_length"]), percent(search_share(its))])
    head = ["strategy", "decoding", "whole request", "decoding, slowest prompt", "tokens per second",
            "drafts accepted", "tokens per round", "time in search"]
    return markdown(head, rows), "Speed relative to knap's plain decoding. " + prompts_text(all_rows)


def class_of(file):
    """The class of prompts that a file measures: "code" for cpu-strategies-code.json."""
    return file["name"].removesuffix(".json").rpartition("-")[2]


def strategies_by_class(files):
    """knap bench, a file for each class of prompts: a row for each strategy, decoding and whole requests by class."""
    files = shortest_prompts_first(files)
    all_rows = rows_in(files)
    rows = []
    for strategy in strategies_of(all_rows):
        cells = [named(strategy, all_rows)]
        for file in files:
            its = of_strategy(file["rows"], strategy)
            cells += [interval(data.summary(its)["speedup"]), interval(request(file["rows"], strategy))] if its else "--"
        rows.append(cells)
    head = ["strategy"]
    classes = []
    for file in files:
        head += [f"{class_of(file)}: decoding", "whole request"]
        prompts = {data.prompt_key(row) for row in file["rows"]}
        classes.append(f"{class_of(file)}: {plural(len(prompts), 'prompt')} of "
                       f"{span([key[3] for key in prompts])} tokens")
    text = f"Speed relative to knap's plain decoding. Prompts: {'; '.join(classes)}. "
    return markdown(head, rows), text + prompts_text(all_rows)


def by_data(files):
    """Rows grouped by data set, in the order of the files."""
    groups = {}
    for row in rows_in(files):
        groups.setdefault(row["data"].removesuffix(".jsonl"), []).append(row)
    return groups


def data_sets(files):
    """knap bench: a row for each strategy; speeds and accepted drafts by data set."""
    groups = by_data(files)
    all_rows = [row for rows in groups.values() for row in rows]
    table = []
    for strategy in strategies_of(all_rows):
        cells = [named(strategy, all_rows)]
        for rows in groups.values():
            its = of_strategy(rows, strategy)
            if its:
                total = data.summary(its)
                cells.append(f"{interval(total['speedup'])} / {number(request(rows, strategy)[0])} / "
                             f"{percent(total['acceptance_rate'])}")
            else:
                cells.append("-")
        table.append(cells)
    text = ("Speed of decoding relative to knap's plain decoding / of the whole request / share of drafted tokens "
            "accepted. ")
    return markdown(["strategy", *groups], table), text + prompts_text(all_rows)


def expectations(files):
    """knap bench, a file for each class of prompts: a row for each class; the default strategy and lookup alone."""
    files = shortest_prompts_first(files)
    all_rows = rows_in(files)
    table = []
    for file in files:
        rows = file["rows"]
        prompts = {data.prompt_key(row) for row in rows}
        cells = [class_of(file), str(len(prompts)), tokens(round(median([key[3] for key in prompts])))]
        for strategy in ("knapspec", "lookup"):
            cells += [interval(data.summary(of_strategy(rows, strategy))["speedup"]),
                      number(request(rows, strategy)[0])]
        table.append(cells)
    head = ["kind of prompt", "prompts", "tokens, median", "`knapspec`: decoding", "whole request",
            "copies alone (`lookup`): decoding", "whole request"]
    return markdown(head, table), "Speed relative to knap's plain decoding. " + prompts_text(all_rows)


def skipped_shares(rows, n_layers):
    """The shares of attentions and MLPs that drafts skip, and of attentions at a window, weighted by tokens."""
    totals = {"a": 0.0, "m": 0.0, "w": 0.0}
    n_tokens = 0
    for level in (level for row in rows for level in row["levels"]):
        n_tokens += level["n_tokens"]
        for kind, n_modules in modules_of(level["plan"], n_layers).items():
            totals[kind] += level["n_tokens"] * n_modules / n_layers
    return {kind: total / n_tokens for kind, total in totals.items()} if n_tokens else None


def layers_of(text, n_layers):
    """The layers that "", "3", "3-5" or "1+5-9" name."""
    if not text:
        return range(n_layers)
    ends = [part.split("-") for part in text.split("+")]
    return [layer for part in ends for layer in range(int(part[0]), int(part[-1]) + 1)]


def modules_of(plan, n_layers):
    """How many attentions ("a") and MLPs ("m") a written plan skips, and how many attentions it narrows ("w")."""
    levels = {"a": ["full"] * n_layers, "m": ["full"] * n_layers}
    for name, _, level in (item.partition("=") for item in plan.split(",")):
        if name == "exit":
            name, level = f"l{level}-{n_layers - 1}", "skip"
        if name[:1] not in ("a", "m", "l") or not level:
            continue
        for layer in layers_of(name[1:], n_layers):
            for module in "am" if name[0] == "l" else name[0]:
                levels[module][layer] = level
    return {"a": levels["a"].count("skip"), "m": levels["m"].count("skip"),
            "w": sum(level.startswith("w") for level in levels["a"])}


def skipped(files):
    """knap bench: by context length, the shares of modules that each strategy's drafts skip."""
    groups = data.context_groups(files)
    all_rows = [row for _, rows in groups for row in rows]
    strategies_ = [name for name in strategies_of(all_rows) if name != PLAIN]
    table = []
    for length, rows in groups:
        cells = [length_label(length, rows)]
        for strategy in strategies_:
            shares = skipped_shares(of_strategy(rows, strategy), files[0]["model"]["n_layers"])
            cells.append(" / ".join(number(shares[kind]) for kind in ("a", "m", "w")) if shares else "no plan drafted")
        table.append(cells)
    head = ["tokens of context", *(named(name, all_rows) for name in strategies_)]
    counts = sorted({len(set(map(data.prompt_key, rows))) for _, rows in groups})
    return markdown(head, table), ("Share of attentions skipped / of MLPs skipped / of attentions at a window, a mean "
                                   "weighted by the tokens written while the plan drafted, over "
                                   f"{'/'.join(map(str, counts))} prompts per length")


def matrix(groups, first):
    """Decoding speed by group (a list of labels and rows) and strategy."""
    all_rows = [row for _, rows in groups for row in rows]
    columns = strategies_of(all_rows)
    table = []
    for label, rows in groups:
        cells = [label, str(len(set(map(data.prompt_key, rows))))]
        for strategy in columns:
            its = of_strategy(rows, strategy)
            cells.append(interval(data.summary(its)["speedup"]) if its else "-")
        table.append(cells)
    head = [first, "prompts", *(named(strategy, all_rows) for strategy in columns)]
    text = "Speed of decoding relative to knap's plain decoding. " + prompts_text(all_rows)
    if any(cells[1] == "1" for cells in table):
        text += "; where there is one prompt, intervals are over its turns"
    return markdown(head, table), text


def tasks(files):
    """knap bench: a row for each task (or data set without tasks), a column for each strategy."""
    groups = {}
    for row in rows_in(files):
        name = row["data"].removesuffix(".jsonl")
        groups.setdefault(f"{name}: {row['task']}" if row["task"] not in ("", name) else name, []).append(row)
    return matrix(list(groups.items()), "task")


def length_label(length, rows):
    return tokens(length) if rows[0]["depth"] is not None else f"up to {tokens(length)}"


def speedups_by_length(files):
    """knap bench: speed relative to plain decoding, a row for each length, a column for each strategy."""
    return matrix([(length_label(length, rows), rows) for length, rows in data.context_groups(files)],
                  "tokens of context")


def context_table(files, value_of, cell, is_faster_when_less):
    """A row for each length: `value_of` a row for plain decoding, each strategy and libllama, and how many times as
    fast as libllama each is. Means are geometric, so a ratio of means is the mean of the prompts' ratios."""
    groups = data.context_groups(files)
    all_rows = [row for _, rows in groups for row in rows]
    ours = [PLAIN, *(name for name in strategies_of(all_rows) if name not in (PLAIN, PEER))]
    table = []
    for length, rows in groups:
        values = {name: {data.prompt_key(row): value_of(row) for row in of_strategy(rows, name)}
                  for name in [*ours, PEER]}
        cells = [length_label(length, rows)]
        cells += [cell(data.geometric_mean(list(values[name].values()))[0]) if values[name] else "-"
                  for name in [*ours, PEER]]
        for name in ours:
            ratios = [value / values[PEER][key] for key, value in values[name].items() if key in values[PEER]]
            if is_faster_when_less:
                ratios = [1 / ratio for ratio in ratios]
            cells.append(interval(data.geometric_mean(ratios)) if ratios else "-")
        table.append(cells)
    names = ["plain", *(named(name, all_rows) for name in ours[1:])]
    head = ["tokens of context", *names, "libllama", *(f"{name} / libllama" for name in names)]
    return markdown(head, table), prompts_text(all_rows)


def context(files):
    """knap bench --peer llama: tokens per second of decoding by context length, knap and libllama."""
    table, text = context_table(files, lambda row: row["tokens_per_second"], rate, is_faster_when_less=False)
    return table, "Tokens per second of decoding alone. " + text


def context_requests(files):
    """knap bench --peer llama: seconds of whole requests by context length, knap and libllama."""
    table, text = context_table(files, data.request_seconds, number, is_faster_when_less=True)
    answers = span([turn["n_generated"] for file in files for row in file["rows"] for turn in row["turns"]])
    return table, (f"Seconds to read the prompt and decode {answers} tokens; ratios are speeds. {text}")
