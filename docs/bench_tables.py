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


def race_by_model(files):
    """decode_bench on several models: knap / libllama, a row for each model."""
    by_model = {data.models(file)[0]: {(row["what"] == "decode", row["depth"]): race_ratios(row) for row in race_rows(file)}
                for file in files}
    columns = sorted({column for ratios in by_model.values() for column in ratios})
    heads = [race_label({"what": "decode" if decodes else "prefill", "depth": depth}) for decodes, depth in columns]
    rows = [[model.removesuffix(".gguf"), *(quartiles(ratios[column]) if column in ratios else "-" for column in columns)]
            for model, ratios in by_model.items()]
    text = ("knap's speed over that of libllama with the faster of its two flash attention settings; quartiles in brackets. "
            + runs_text([ratios for of_model in by_model.values() for ratios in of_model.values()]))
    return markdown(["model", *heads], rows), text


def experts(files):
    """shape_bench on models with experts: passes over one of one row, draft steps over one with all modules."""
    every = [row for file in files for row in file["rows"]]

    def ratios(times, side):
        whole = next(name for name in times if (name.startswith("1 row,") if "row" in side else name == "draft, full"))
        return data.paired_ratios(times[side], times[whole])

    def head(side):
        return side.split(",")[0] if "row" in side else side.replace("draft, ", "draft with ")

    sides = {head(side): [] for row in every for side in row["times_ms"] if not side.startswith("1 row,") and side != "draft, full"}
    rows = []
    for row in every:
        found = {head(side): ratios(row["times_ms"], side) for side in row["times_ms"]}
        rows.append([row["shape"], str(row["n_layers"]), *(number(median(found[side])) if side in found else "-" for side in sides)])
        for side, values in sides.items():
            values += [found[side]] if side in found else []
    return markdown(["shape", "layers", *sides], rows), runs_text([values for side in sides.values() for values in side])


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


def agent(files):
    """bench/serve/run.py: the work of an agent over plain decoding, a row for each kind of request."""
    table, controls = [], []
    for row in (row for file in files for row in file["rows"]):
        found = row["details"]
        speeds = [data.geometric_mean(data.paired_ratios(ours, plain))[0]
                  for ours, plain in zip(found["knap"], found["plain"], strict=True)]
        requests = [data.geometric_mean(ratios)[0] for ratios in found["request"]]
        calm = [speed for speed, share in zip(speeds, found["distinct_trigrams"]) if share >= data.LOOPS_BELOW]
        controls += [data.geometric_mean(ratios)[0] for ratios in found["again"]]
        table.append([row["what"].removesuffix(", over plain decoding"), tokens(round(median(found["n_tokens"]))),
                      number(median(found["distinct_trigrams"])), percent(median(found["right"])),
                      interval(data.geometric_mean(speeds)), interval(data.geometric_mean(calm)) if calm else "-",
                      interval(data.geometric_mean(requests)), number(min(speeds)), str(len(found["knap"][0]))])
    head = ["requests", "tokens of an answer, median", "distinct trigrams", "right, median", "decoding", "without loops",
            "whole request", "decoding, slowest request", "times asked"]
    text = ("Speed of the default strategy relative to plain decoding of the same requests, by two servers in turn. Right: share of the "
            "lines that the edited file has, or of the form's texts whose words are in the note. Without loops: without answers "
            f"whose share of distinct trigrams is below {data.LOOPS_BELOW}. Geometric means with 95 % intervals over requests; plain "
            f"decoding against itself: {interval(data.geometric_mean(controls))}; every text is identical to that of plain decoding")
    return markdown(head, table), text


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


def decoding(rows, strategy):
    """The speed of a strategy over plain decoding on these prompts."""
    its = of_strategy(rows, strategy)
    return interval(data.summary(its)["speedup"]) if its else "-"


def distinct(rows):
    """The share of distinct trigrams of the texts that plain decoding writes."""
    return number(data.distinct_trigrams(of_strategy(rows, PLAIN)))


def over_hindsight(rows):
    found = data.hindsight(rows)
    return interval(found[2]) if found else "-"


HINDSIGHT = "`knapspec` / best simple way"


def columns_text(rows):
    """What the columns on texts and hindsight mean, as far as they apply."""
    keys = {data.prompt_key(row) for row in rows}
    n_loops = len(keys) - len({data.prompt_key(row) for row in data.without_loops(rows)})
    text = "Distinct trigrams: median share of the answers' runs of three tokens that are distinct. "
    if data.distinct_trigrams(of_strategy(rows, PLAIN)) is not None:
        text += f"Without loops: without prompts whose share is below {data.LOOPS_BELOW} ({n_loops} of {len(keys)}). "
    if data.hindsight(rows):
        windows = any(row["strategy"].startswith("static/") and data.SIMPLE.fullmatch(row["strategy"]) for row in rows)
        ways = "`lookup`, the best fixed window and plain decoding" if windows else "`lookup` and plain decoding"
        text += f"The best simple way is the fastest of {ways} on the same prompts, in hindsight. "
    return text


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
    calm = data.without_loops(all_rows)
    rows = []
    for strategy in strategies_of(all_rows):
        its = of_strategy(all_rows, strategy)
        total = data.summary(its)
        rows.append([named(strategy, all_rows), interval(total["speedup"]), decoding(calm, strategy),
                     interval(request(all_rows, strategy)), number(total["lowest"]),
                     rate(total["tokens_per_second"]), percent(total["acceptance_rate"]),
                     number(total["mean_accepted_length"]), percent(search_share(its)),
                     number(data.distinct_trigrams(its))])
    head = ["strategy", "decoding", "without loops", "whole request", "decoding, slowest prompt", "tokens per second",
            "drafts accepted", "tokens per round", "time in search", "distinct trigrams"]
    text = "Speed relative to knap's plain decoding. " + columns_text(all_rows)
    found = data.hindsight(all_rows)
    if found:
        text += f"`knapspec` over it: {interval(found[2])}. "
    return markdown(head, rows), text + prompts_text(all_rows)


def class_of(file):
    """The class of prompts that a file measures: "code" for cpu-strategies-code.json."""
    return file["name"].removesuffix(".json").rpartition("-")[2]


def strategies_by_class(files):
    """knap bench, a file for each class of prompts: a row for each strategy, columns for each class."""
    files = shortest_prompts_first(files)
    all_rows = rows_in(files)
    calm = {class_of(file): data.without_loops(file["rows"]) for file in files}
    rows = []
    for strategy in strategies_of(all_rows):
        cells = [named(strategy, all_rows)]
        for file in files:
            its = of_strategy(file["rows"], strategy)
            cells += ([interval(data.summary(its)["speedup"]), decoding(calm[class_of(file)], strategy),
                       interval(request(file["rows"], strategy))] if its else "---")
        rows.append(cells)
    for label, value_of in ((HINDSIGHT, over_hindsight), ("distinct trigrams", distinct)):
        values = [cell for file in files for cell in (value_of(file["rows"]), value_of(calm[class_of(file)]), "")]
        if set(values) - {"-", ""}:
            rows.append([label, *values])
    head = ["strategy"]
    classes = []
    for file in files:
        head += [f"{class_of(file)}: decoding", "without loops", "whole request"]
        prompts = {data.prompt_key(row) for row in file["rows"]}
        classes.append(f"{class_of(file)}: {plural(len(prompts), 'prompt')} of "
                       f"{span([key[3] for key in prompts])} tokens")
    text = f"Speed relative to knap's plain decoding. Prompts: {'; '.join(classes)}. "
    return markdown(head, rows), text + columns_text(all_rows) + prompts_text(all_rows)


def way_named(name):
    return "plain decoding" if name == PLAIN else f"`{name}`"


def hindsight(files):
    """knap bench, a file for each class of prompts: knapspec beside the best simple way in hindsight, a row for each."""
    files = shortest_prompts_first(files)
    all_rows = rows_in(files)
    rows, ratios = [], []
    for file in files:
        found = data.hindsight(file["rows"])
        if not found:
            raise ValueError(f"{file['name']} without rows of knapspec and lookup")
        best, speed, ratio = found
        ratios.append(ratio[0])
        n_prompts = len({data.prompt_key(row) for row in file["rows"]})
        rows.append([class_of(file), str(n_prompts), distinct(file["rows"]), decoding(file["rows"], "knapspec"),
                     f"{number(speed)}, {way_named(best)}", interval(ratio),
                     over_hindsight(data.without_loops(file["rows"]))])
    head = ["kind of prompt", "prompts", "distinct trigrams", "`knapspec`", "best simple way", HINDSIGHT, "without loops"]
    text = (f"Speed of decoding relative to knap's plain decoding. {columns_text(all_rows)}Over the kinds, `knapspec` / best "
            f"simple way is {number(data.geometric_mean(ratios)[0])} in the mean, {number(min(ratios))} at the lowest. ")
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
    calm = {name: data.without_loops(rows) for name, rows in groups.items()}
    for strategy in strategies_of(all_rows):
        cells = [named(strategy, all_rows)]
        for name, rows in groups.items():
            its = of_strategy(rows, strategy)
            if its:
                total = data.summary(its)
                its_calm = of_strategy(calm[name], strategy)
                cells.append(f"{interval(total['speedup'])} / "
                             f"{number(data.summary(its_calm)['speedup'][0] if its_calm else None)} / "
                             f"{number(request(rows, strategy)[0])} / {percent(total['acceptance_rate'])}")
            else:
                cells.append("-")
        table.append(cells)
    for label, value_of in ((HINDSIGHT, over_hindsight), ("distinct trigrams", distinct)):
        values = [value_of(rows) for rows in groups.values()]
        if set(values) - {"-"}:
            table.append([label, *values])
    text = ("Speed of decoding relative to knap's plain decoding / the same without loops / of the whole request / share of "
            "drafted tokens accepted. ")
    return markdown(["strategy", *groups], table), text + columns_text(all_rows) + prompts_text(all_rows)


def expectations(files):
    """knap bench, a file for each class of prompts: a row for each class; the default strategy and lookup alone."""
    files = shortest_prompts_first(files)
    all_rows = rows_in(files)
    table = []
    for file in files:
        rows = file["rows"]
        prompts = {data.prompt_key(row) for row in rows}
        cells = [class_of(file), str(len(prompts)), tokens(round(median([key[3] for key in prompts]))), distinct(rows)]
        for strategy in ("knapspec", "lookup"):
            cells += [decoding(rows, strategy), decoding(data.without_loops(rows), strategy),
                      number(request(rows, strategy)[0])]
        table.append([*cells, over_hindsight(rows)])
    head = ["kind of prompt", "prompts", "tokens, median", "distinct trigrams", "`knapspec`: decoding", "without loops",
            "whole request", "copies alone (`lookup`): decoding", "without loops", "whole request", HINDSIGHT]
    text = "Speed relative to knap's plain decoding. " + columns_text(all_rows)
    return markdown(head, table), text + prompts_text(all_rows)


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
        cells = [length_label(length, rows), distinct(rows)]
        for strategy in strategies_:
            shares = skipped_shares(of_strategy(rows, strategy), files[0]["model"]["n_layers"])
            cells.append(" / ".join(number(shares[kind]) for kind in ("a", "m", "w")) if shares else "no plan drafted")
        table.append(cells)
    head = ["tokens of context", "distinct trigrams", *(named(name, all_rows) for name in strategies_)]
    counts = sorted({len(set(map(data.prompt_key, rows))) for _, rows in groups})
    return markdown(head, table), ("Share of attentions skipped / of MLPs skipped / of attentions at a window, a mean "
                                   "weighted by the tokens written while the plan drafted, over "
                                   f"{'/'.join(map(str, counts))} prompts per length")


def matrix(groups, first, has_lowest=False):
    """Decoding speed by group (a list of labels and rows) and strategy, and `knapspec` on its slowest prompt."""
    all_rows = [row for _, rows in groups for row in rows]
    columns = strategies_of(all_rows)
    table = []
    for label, rows in groups:
        cells = [label, str(len(set(map(data.prompt_key, rows)))), distinct(rows)]
        cells += [decoding(rows, strategy) for strategy in columns]
        lowest = [number(data.summary(of_strategy(rows, "knapspec"))["lowest"])] if has_lowest else []
        table.append([*cells, decoding(data.without_loops(rows), "knapspec"), *lowest, over_hindsight(rows)])
    head = [first, "prompts", "distinct trigrams", *(named(strategy, all_rows) for strategy in columns),
            "`knapspec`, without loops", *(["`knapspec`, slowest prompt"] if has_lowest else []), HINDSIGHT]
    text = "Speed of decoding relative to knap's plain decoding. " + columns_text(all_rows) + prompts_text(all_rows)
    if any(cells[1] == "1" for cells in table):
        text += "; where there is one prompt, intervals are over its turns"
    return markdown(head, table), text


def instruction_sets(files):
    """knap bench, a file for each instruction set: a row for each, a column for each strategy."""
    return matrix([(file["host"]["isa"], file["rows"]) for file in files], "instructions", has_lowest=True)


WITHOUT_MEMORY = "knapspec(memory=off)"


def paired(rows, ours, theirs):
    found = data.paired_speed(rows, ours, theirs)
    return interval(found) if found else "-"


def memory(files):
    """knap bench --memory on, a file for each class of prompts: knapspec in a first run and in a second one."""
    files = shortest_prompts_first(files)
    rows = []
    for file in files:
        its = file["rows"]
        ratio = data.paired_speed(its, "knapspec", WITHOUT_MEMORY)
        if not ratio:
            raise ValueError(f"{file['name']} without rows of knapspec and {WITHOUT_MEMORY}")
        n_prompts = len({data.prompt_key(row) for row in its})
        rows.append([class_of(file), str(n_prompts), distinct(its), decoding(its, WITHOUT_MEMORY), decoding(its, "knapspec"),
                     interval(ratio), paired(data.without_loops(its), "knapspec", WITHOUT_MEMORY),
                     percent(search_share(of_strategy(its, WITHOUT_MEMORY)), 1), percent(search_share(of_strategy(its, "knapspec")), 1)])
    head = ["kind of prompt", "prompts", "distinct trigrams", "first run", "second run", "second / first", "without loops",
            "first run, time in search", "second run, time in search"]
    text = ("Speed of decoding relative to knap's plain decoding, and of a second run over a first one on the same prompts. Every "
            f"prompt is a run of its own; a second run has seen other prompts of the same kinds. {columns_text(rows_in(files))}")
    return markdown(head, rows), text + prompts_text(rows_in(files))


def is_peer(row):
    return row["strategy"] == PEER or row["strategy"].startswith("ngram-")


def texts_text(rows):
    """How often peers wrote the texts that plain decoding writes, as far as the rows tell."""
    counts = [f"{label} {sum(values)} of {len(values)}" for label, values in (
        (label, [row[field] for row in rows if is_peer(row) and row.get(field) is not None])
        for label, field in (("libllama's plain text", "identical_to_libllama"), ("knap's", "identical_to_knap"))) if values]
    return f"; texts of peers that are {' and '.join(counts)}" if counts else ""


def peers(files):
    """knap bench --peer, a file for each class of prompts: knap and llama.cpp's own drafts, and knapspec over the best of these."""
    files = shortest_prompts_first(files)
    all_rows = rows_in(files)
    rows = [[NAMES.get(strategy, f"llama.cpp, `{strategy}`" if strategy.startswith("ngram-") else f"`{strategy}`")]
            for strategy in strategies_of(all_rows)]
    best = [[f"`knapspec` / {way}"] for way in ("libllama, plain decoding", "the best of llama.cpp", "the same, without loops")]
    for file in files:
        its = file["rows"]
        calm = data.without_loops(its)
        for cells, strategy in zip(rows, strategies_of(all_rows)):
            cells.append(decoding(its, strategy))
        theirs = list(dict.fromkeys(row["strategy"] for row in its if is_peer(row)))
        fastest = max(theirs, key=lambda name: data.summary(of_strategy(its, name))["speedup"][0])
        best[0].append(paired(its, "knapspec", PEER))
        best[1].append(f"{paired(its, 'knapspec', fastest)}, {'plain' if fastest == PEER else f'`{fastest}`'}")
        best[2].append(paired(calm, "knapspec", fastest))
    head = ["strategy", *(f"{class_of(file)}, {plural(len({data.prompt_key(row) for row in file['rows']}), 'prompt')}" for file in files)]
    table = [*rows, *best, ["distinct trigrams", *(distinct(file["rows"]) for file in files)]]
    text = ("Speed of decoding relative to knap's plain decoding, and of `knapspec` over llama.cpp on the same prompts; the best of "
            f"llama.cpp is its fastest way on all prompts of a kind together. {columns_text(all_rows)}")
    return markdown(head, table), text + prompts_text(all_rows) + texts_text(all_rows)


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
        calm = {data.prompt_key(row) for row in data.without_loops(rows)}
        cells = [length_label(length, rows), distinct(rows)]
        cells += [cell(data.geometric_mean(list(values[name].values()))[0]) if values[name] else "-"
                  for name in [*ours, PEER]]
        for name, keys in [*((name, values[PEER].keys()) for name in ours), (ours[-1], calm & values[PEER].keys())]:
            ratios = [value / values[PEER][key] for key, value in values[name].items() if key in keys]
            if is_faster_when_less:
                ratios = [1 / ratio for ratio in ratios]
            cells.append(interval(data.geometric_mean(ratios)) if ratios else "-")
        table.append([*cells, over_hindsight(rows)])
    names = ["plain", *(named(name, all_rows) for name in ours[1:])]
    head = ["tokens of context", "distinct trigrams", *names, "libllama", *(f"{name} / libllama" for name in names),
            f"{names[-1]} / libllama, without loops", f"{HINDSIGHT}, decoding"]
    return markdown(head, table), columns_text(all_rows) + prompts_text(all_rows)


def context(files):
    """knap bench --peer llama: tokens per second of decoding by context length, knap and libllama."""
    table, text = context_table(files, lambda row: row["tokens_per_second"], rate, is_faster_when_less=False)
    return table, "Tokens per second of decoding alone. " + text


def context_requests(files):
    """knap bench --peer llama: seconds of whole requests by context length, knap and libllama."""
    table, text = context_table(files, data.request_seconds, number, is_faster_when_less=True)
    answers = span([turn["n_generated"] for file in files for row in file["rows"] for turn in row["turns"]])
    return table, (f"Seconds to read the prompt and decode {answers} tokens; ratios are speeds. {text}")
