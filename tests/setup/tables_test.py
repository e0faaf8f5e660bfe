#!/usr/bin/env python3
"""docs/tables.py on a small checkout, and on files that the real programs write.

    tables_test.py [BUILD TINY_MODEL]    with knap, decode_bench and verify_bench of a build"""
import html
import json
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

sys.dont_write_bytecode = True
ROOT = Path(__file__).resolve().parent.parent.parent
sys.path.insert(0, str(ROOT / "docs"))
import bench_data  # noqa: E402
import bench_tables  # noqa: E402

BUILD, TINY_MODEL = (sys.argv[1:] + [None, None])[:2]
CPU = "Fast(R) CPU"


def program_file(rows, program="decode_bench", device=CPU):
    return {"format": 1, "program": program, "knap": "1.2.3", "command": f"{program} m.gguf --json d.json",
            "host": {"cpu": CPU, "n_cores": 2, "isa": "avx2", "memory_bytes": 1, "system": "Linux"},
            "device": device, "threads": 2, "models": [{"file": "m.gguf"}], "rows": rows, "name": "d.json"}


def decode_row(depth, knap, slow, fast, what="decode"):
    return {"model": "m.gguf", "what": what, "depth": depth, "n_tokens": 10,
            "times_ms": {"knap": knap, "llama, flash off": slow, "llama, flash on": fast}}


DECODE = program_file([decode_row(512, [10], [40], [30], "prefill"),
                       decode_row(16, [18, 20, 22], [80, 90, 100], [40, 60, 70])])


def bench_row(strategy, speedup, depth=None, id="a", task="qa", n_drafted=0, n_accepted=0, speed=100.0):
    return {"data": "some.jsonl", "id": id, "task": task, "depth": depth, "n_prompt": depth or 100,
            "strategy": strategy, "prefill_ms": 50, "turns": [{"decode_ms": 100 / speedup, "plain_ms": 100,
                                                               "search_ms": 0, "n_generated": 5}],
            "speedup": {"mean": speedup, "low": None, "high": None}, "tokens_per_second": speed, "rounds": 4,
            "n_drafted": n_drafted, "n_accepted": n_accepted, "mean_accepted_length": 1.5,
            "first_difference": None, "is_projection": False}


def bench_file(rows):
    settings = {"threads": 2, "n_ctx": 128, "n_predict": 8, "limit": 0, "max_prompt_tokens": 64, "repeat": 1,
                "depths": [], "strategies": ["lookup(x=1;y=2)"], "adapter": None, "acceptance": ["greedy"],
                "temperature": 0.0, "top_k": 40, "top_p": 0.95, "min_p": 0.05, "seed": 0,
                "assume_acceptance": None, "peer": None, "cache_type_k": "f16", "cache_type_v": "f16",
                "kernels": "auto", "data": ["some.jsonl"]}
    return {"format": 1, "knap": "1.2.3", "device": CPU, "host": DECODE["host"], "model": {"file": "m.gguf"},
            "settings": settings, "is_complete": True, "rows": rows, "name": "b.json"}


class StatisticsTest(unittest.TestCase):
    def test_quantiles_lie_between_values(self):
        self.assertEqual(bench_data.median([3, 1, 2]), 2)
        self.assertEqual(bench_data.quantile([1, 2, 3, 4], 0.25), 1.75)
        self.assertAlmostEqual(bench_data.spread([1, 2, 3, 4]), 0.3)

    def test_interval_of_a_geometric_mean(self):
        mean, low, high = bench_data.geometric_mean([1, 4])
        self.assertAlmostEqual(mean, 2)
        # Logarithms 0 and 1.386: a standard error of 0.693, and 12.706 of them on each side.
        self.assertAlmostEqual(low * high, 4)
        self.assertAlmostEqual(high, 2 * 2**12.706, delta=0.01)
        self.assertEqual(bench_data.geometric_mean([3])[1:], (None, None))

    def test_command_of_a_benchmark_leaves_out_defaults(self):
        self.assertEqual(bench_data.command(bench_file([])),
                         "knap bench -m m.gguf --data some.jsonl --strategies 'lookup(x=1;y=2)' -n 8 "
                         "--max-prompt-tokens 64 --repeat 1 -t 2 -c 128 -ctk f16 -ctv f16 --kernels auto -o b.json")
        file = bench_file([])
        file["settings"] = {**file["settings"], "temperature": 0.5, "exact": False, "fresh_strategies": True}
        self.assertIn("--kernels auto --exact off --fresh-strategies --temp 0.5", bench_data.command(file))
        file["settings"] |= {"profile": False, "memory": True}
        self.assertIn("--fresh-strategies --profile none --memory on --temp 0.5", bench_data.command(file))
        file["settings"] |= {"profile": True, "memory": False}
        self.assertIn("--fresh-strategies --temp 0.5", bench_data.command(file))
        file["cell"] = {"command": "KNAP_ISA=avx2 build/knap bench -m $MODEL"}
        self.assertTrue(bench_data.command(file).startswith("KNAP_ISA=avx2 knap bench -m m.gguf "))
        file["settings"]["skip"] = 5
        self.assertIn("-n 8 --skip 5 --max-prompt-tokens 64", bench_data.command(file))
        file["settings"]["parallel"] = 4
        self.assertIn("--kernels auto --parallel 4 --exact off", bench_data.command(file))


class KindsTest(unittest.TestCase):
    def test_race_takes_medians_and_the_better_peer(self):
        table, text = bench_tables.race([DECODE])
        self.assertIn("| decoding after 16 tokens | 500 | 167 | 3.00 (2.61-3.09) |", table)
        self.assertIn("| reading a prompt of 512 tokens | 1,000 | 333 | 3.00 |", table)
        self.assertIn("of 1 to 3 runs in turn; half the distance between the quartiles of a ratio is at most 8.0 %", text)

    def test_race_has_the_shortest_and_the_longest(self):
        file = program_file([decode_row(depth, [10], [30], [40]) for depth in (512, 16, 7680)])
        table, _ = bench_tables.race([file])
        self.assertEqual(table.count("\n| decoding"), 2)
        self.assertIn("| decoding after 16 tokens | 1,000 | 333 | 3.00 |\n| decoding after 7,680 tokens |", table)
        self.assertEqual(bench_tables.race_by_length([file])[0].count("\n| decoding"), 3)

    def test_race_by_model_has_a_row_for_each_model(self):
        files = [{**program_file([decode_row(16, [10], [30], [40])]), "models": [{"file": "a.gguf"}]},
                 {**program_file([decode_row(16, [10], [20], [40]), decode_row(4096, [10], [25], [40])]), "models": [{"file": "b.gguf"}]}]
        table, _ = bench_tables.race_by_model(files)
        self.assertIn("| model | decoding after 16 tokens | decoding after 4,096 tokens |", table)
        self.assertIn("| a | 3.00 | - |\n| b | 2.00 | 2.50 |", table)

    def test_experts_compare_passes_and_drafts_with_wholes_of_their_kind(self):
        times = {"1 row, 4 layers": [2, 2], "8 rows, 4 layers": [6, 8], "draft, full": [4, 4], "draft, m=e2": [3, 2]}
        table, _ = bench_tables.experts([program_file([{"shape": "moe", "n_layers": 4, "times_ms": times}])])
        self.assertIn("| shape | layers | 8 rows | draft with m=e2 |", table)
        self.assertIn("| moe | 4 | 3.50 | 0.62 |", table)

    def test_verify_and_draft_compare_runs_in_pairs(self):
        row = {"model": "m.gguf", "what": "verify", "cache": "f16", "depth": 2048, "n_tokens": 1,
               "times_ms": {"1": [1, 2, 3], "4": [2, 4, 9]}}
        table, text = bench_tables.verify([program_file([row])])
        self.assertIn("at most 12.5 % of it", text)
        self.assertIn("| m.gguf, f16 cache | 2,048 | 2.00 ms | 2.00 |", table)
        row = {"model": "m.gguf", "what": "draft", "depth": 1000, "n_tokens": 2,
               "times_ms": {"whole model": [4, 4], "half": [1, 3]}}
        table, _ = bench_tables.draft([program_file([row])])
        self.assertIn("| whole model, ms | 2.00 |\n| half | 0.50 |", table)

    def test_device_has_libllama_beside_knap(self):
        row = {"model": "m.gguf", "what": "device", "depth": 0, "n_tokens": 2,
               "times_ms": {"knap, one row": [2], "llama, one row": [3], "draft, whole model": [2],
                            "draft, half of the layers": [1]}}
        file = program_file([row], device="Big GPU")
        table, _ = bench_tables.device([file])
        self.assertIn("| m.gguf | 0 | 1.00 | 1.50 | 1.50 | 0.50 |", table)
        self.assertEqual(bench_data.machine(file), "Big GPU")
        self.assertIn("| m.gguf | 0 | 1.00 | 1.50 | 1.50 |", bench_tables.device_plain([file])[0])

    def test_strategies_average_over_prompts(self):
        rows = [bench_row("lookup", 2, n_drafted=3, n_accepted=2), bench_row("lookup", 2, id="b", n_drafted=1),
                bench_row("autoregressive", 1)]
        table, text = bench_tables.strategies([bench_file(rows)])
        self.assertIn("| `lookup` | 2.00 (2.00-2.00) | - | 1.50 (1.50-1.50) | 2.00 | 100 | 50 % | 1.50 | 0 % | - |", table)
        self.assertIn("plain decoding, again", table)
        self.assertIn("2 prompts, 1 turn each; plain decoding against itself: 1.00", text)
        self.assertIn("every text is identical to that of plain decoding", text)

    def test_agent_has_a_row_for_each_kind_of_request(self):
        details = {"n_tokens": [500, 520], "distinct_trigrams": [0.7, 0.2], "right": [0.9, 1], "knap": [[300, 300], [100, 100]],
                   "plain": [[100, 100], [100, 100]], "again": [[1, 1], [1, 1]], "request": [[2, 2], [2, 2]]}
        file = program_file([{"what": "2 turns that edit one file, over plain decoding", "details": details}], "run.py")
        table, text = bench_tables.agent([file])
        self.assertRegex(table, r"\| 2 turns that edit one file \| 510 \| 0\.45 \| 95 % \| 1\.73 \([^|]*\) \| 3\.00 \| "
                                r"2\.00 \(2\.00-2\.00\) \| 1\.00 \| 2 \|")
        self.assertIn("plain decoding against itself: 1.00 (1.00-1.00)", text)

    def test_memory_compares_runs_on_the_same_prompts(self):
        rows = [told(name, speed, share, id) for id, share, speeds in (("a", 0.9, (1, 2, 2.2)), ("b", 0.2, (1, 1, 2)))
                for name, speed in zip((bench_data.PLAIN, "knapspec(memory=off)", "knapspec"), speeds)]
        file = {**bench_file(rows), "name": "cpu-memory-short.json"}
        table, text = bench_tables.memory([file])
        self.assertRegex(table, r"\| short \| 2 \| 0\.55 \| 1\.41 \([^|]*\) \| 2\.10 \([^|]*\) \| 1\.48 \([^|]*\) \| 1\.10 \| 0\.0 % ")
        self.assertIn("Every prompt is a run of its own", text)
        with self.assertRaises(ValueError):
            bench_tables.memory([{**file, "rows": [row for row in rows if row["strategy"] != "knapspec"]}])

    def test_instruction_sets_have_a_row_each(self):
        files = [{**bench_file([told(bench_data.PLAIN, 1, 0.9, "a"), told("knapspec", speed, 0.9, "a")]),
                  "host": {**DECODE["host"], "isa": isa}} for isa, speed in (("avx512", 1.5), ("avx2", 1.25))]
        table, _ = bench_tables.instruction_sets(files)
        self.assertIn("| instructions | prompts |", table)
        self.assertRegex(table, r"\| avx512 \| 1 \| 0\.90 \| 1\.00 \| 1\.50 \|.*\n\| avx2 \| 1 \| 0\.90 \| 1\.00 \| 1\.25 \| 1\.25 \| 1\.25 \|")

    def test_peers_are_compared_with_the_fastest_of_them(self):
        rows = [bench_row(bench_data.PLAIN, 1), bench_row("knapspec", 2), bench_row("llama", 0.5),
                {**bench_row("ngram-mod", 0.8), "identical_to_libllama": True, "identical_to_knap": False}]
        file = {**bench_file(rows), "name": "cpu-peers-code.json"}
        table, text = bench_tables.peers([file])
        self.assertIn("| strategy | code, 1 prompt |", table)
        self.assertIn("| llama.cpp, `ngram-mod` | 0.80 |", table)
        self.assertIn("| `knapspec` / libllama, plain decoding | 4.00 |", table)
        self.assertIn("| `knapspec` / the best of llama.cpp | 2.50, `ngram-mod` |", table)
        self.assertTrue(text.endswith("; texts of peers that are libllama's plain text 1 of 1 and knap's 0 of 1"))

    def test_whole_requests_compare_the_peer_with_our_prefill(self):
        rows = [bench_row("autoregressive", 1), {**bench_row("llama", 0.5), "prefill_ms": 100}]
        self.assertAlmostEqual(bench_data.request_speedups(rows, "llama")[0], (50 + 100) / (100 + 200))
        rows[1]["request_speedup"] = {"mean": 0.7}
        self.assertEqual(bench_data.request_speedups(rows, "llama"), [0.7])

    def test_classes_are_columns_with_the_shortest_prompts_first(self):
        code = {**bench_file([bench_row("del/10", 2), bench_row("knapspec-paper(variant=paper)", 0.5)]),
                "name": "cpu-strategies-code.json"}
        chat = {**bench_file([{**bench_row("del/10", 4), "n_prompt": 20}]), "name": "cpu-strategies-chat.json"}
        table, text = bench_tables.strategies_by_class([code, chat])
        self.assertIn("| strategy | chat: decoding | without loops | whole request | code: decoding | without loops |", table)
        self.assertIn("| `del/10` | 4.00 | - | 2.00 | 2.00 | - | 1.50 |", table)
        self.assertIn("| `knapspec-paper(variant=paper)` | - | - | - | 0.50 | - | 0.60 |", table)
        self.assertIn("chat: 1 prompt of 20 tokens; code: 1 prompt of 100 tokens", text)

    def test_data_sets_are_columns(self):
        rows = [bench_row("lookup", 2, n_drafted=4, n_accepted=1), {**bench_row("lookup", 4), "data": "other.jsonl"}]
        table, _ = bench_tables.data_sets([bench_file(rows)])
        self.assertIn("| strategy | some | other |", table)
        self.assertIn("| `lookup` | 2.00 / - / 1.50 / 25 % | 4.00 / - / 2.00 / - |", table)

    def test_expectations_have_a_row_for_each_class(self):
        file = {**bench_file([bench_row("knapspec", 2), bench_row("lookup", 0.5)]), "name": "cpu-strategies-code.json"}
        table, _ = bench_tables.expectations([file])
        self.assertIn("| code | 1 | 100 | - | 2.00 | - | 1.50 | 0.50 | - | 0.60 | 2.00 |", table)

    def test_strategies_have_the_share_of_searches(self):
        row = bench_row("knapspec-paper(tau=0.3)", 0.5)
        row["turns"] = [{**turn, "search_ms": turn["decode_ms"] / 4} for turn in row["turns"]]
        table, _ = bench_tables.strategies([bench_file([row])])
        self.assertIn("| `knapspec-paper(tau=0.3)` | 0.50 | - | 0.60 | 0.50 | 100 | - | 1.50 | 25 % | - |", table)

    def test_skipped_counts_modules_of_plans(self):
        self.assertEqual(bench_tables.modules_of("full", 4), {"a": 0, "m": 0, "w": 0})
        self.assertEqual(bench_tables.modules_of("a=w16+64,l1+3=skip,m0=skip", 4), {"a": 2, "m": 3, "w": 2})
        self.assertEqual(bench_tables.modules_of("l=skip,l0-2=full,head=reduced", 4), {"a": 1, "m": 1, "w": 0})
        self.assertEqual(bench_tables.modules_of("exit=1", 4), {"a": 3, "m": 3, "w": 0})
        row = {**bench_row("swift", 1, depth=512), "levels": [
            {"plan": "a0-1=skip", "n_context": 512, "n_tokens": 3}, {"plan": "m=skip", "n_context": 600, "n_tokens": 1}]}
        file = bench_file([row])
        file["model"] = {**file["model"], "n_layers": 4}
        table, _ = bench_tables.skipped([file])
        self.assertIn("| tokens of context | distinct trigrams | `swift` |", table)
        self.assertIn("| 512 | - | 0.38 / 0.25 / 0.00 |", table)

    def test_context_compares_decoding_and_requests_by_length(self):
        rows = [bench_row(strategy, speedup, depth, speed=100 * speedup) for depth in (2048, 512)
                for strategy, speedup in (("autoregressive", 1), ("knapspec", 2), ("llama", 0.5))]
        table, text = bench_tables.context([bench_file(rows)])
        self.assertIn("| tokens of context | distinct trigrams | plain | `knapspec` | libllama | plain / libllama | `knapspec` / libllama |",
                      table)
        self.assertIn("| 512 | - | 100 | 200 | 50.0 | 2.00 | 4.00 | - | - |\n| 2,048 |", table)
        self.assertIn("decoding alone", text)
        table, text = bench_tables.context_requests([bench_file(rows)])
        self.assertIn("| 512 | - | 0.15 | 0.10 | 0.25 | 1.67 | 2.50 |", table)
        self.assertIn("read the prompt and decode 5 tokens", text)

    def test_context_takes_a_file_for_each_length(self):
        long = bench_file([bench_row("autoregressive", 1), bench_row("llama", 0.5)])
        short = bench_file([bench_row("autoregressive", 1)])
        long["settings"] = {**long["settings"], "max_prompt_tokens": 4096}
        table, _ = bench_tables.context([long, short])
        self.assertIn("| up to 64 | - | 100 | - | - | - | - |\n| up to 4,096 | - | 100 | 100 | 1.00 | - | - |", table)

    def test_speedups_by_length_have_a_column_for_each_strategy(self):
        rows = [bench_row("knapspec", 1.5, depth=2048), bench_row("knapspec", 1.2, depth=512)]
        table, text = bench_tables.speedups_by_length([bench_file(rows)])
        self.assertIn("identical", text)
        projected = [{**row, "is_projection": True} for row in rows]
        self.assertNotIn("identical", bench_tables.speedups_by_length([bench_file(projected)])[1])
        self.assertIn("| 512 | 1 | - | 1.20 | - | - |\n| 2,048 | 1 | - | 1.50 | - | - |", table)
        rows[0]["speedup"] = {"mean": 1.5, "low": 1.1, "high": 2.0}
        table, text = bench_tables.speedups_by_length([bench_file(rows)])
        self.assertIn("| 2,048 | 1 | - | 1.50 (1.10-2.00) |", table)
        self.assertIn("where there is one prompt, intervals are over its turns", text)

    def test_tasks_have_a_row_each_and_gaps_where_nothing_was_measured(self):
        rows = [bench_row("knapspec", 1.5), bench_row("llama", 0.5, task="math")]
        table, _ = bench_tables.tasks([bench_file(rows)])
        self.assertIn("| some: qa | 1 | - | 1.50 | - | - | - |\n| some: math | 1 | - | - | 0.50 | - | - |", table)


def told(strategy, speedup, share, id):
    """A row that tells how repetitive its text is."""
    return {**bench_row(strategy, speedup, id=id), "distinct_trigrams": share}


class TextsTest(unittest.TestCase):
    """Two prompts, of which `loop` ends in a loop, where copies are fast and windows are not."""
    LOOP, CALM = 0.2, 0.9
    ROWS = [told(strategy, speedup, share, id)
            for id, share, speedups in (("loop", LOOP, (1, 4, 1.5, 4)), ("calm", CALM, (1, 0.5, 1.5, 1.2)))
            for strategy, speedup in zip((bench_data.PLAIN, "lookup", "static/4/a=w16+64", "knapspec"), speedups)]

    def file(self, name="cpu-parts-chat.json", rows=None):
        return {**bench_file(self.ROWS if rows is None else rows), "name": name}

    def test_loops_are_told_by_the_text_of_plain_decoding(self):
        self.assertEqual({row["id"] for row in bench_data.without_loops(self.ROWS)}, {"calm"})
        edge = [told(bench_data.PLAIN, 1, bench_data.LOOPS_BELOW, "a"), told("lookup", 1, 0.1, "a")]
        self.assertEqual(bench_data.without_loops(edge), edge)
        self.assertEqual(bench_data.without_loops([bench_row(bench_data.PLAIN, 1)]), [], "an older file does not tell")
        self.assertIsNone(bench_data.distinct_trigrams([bench_row(bench_data.PLAIN, 1)]))

    def test_hindsight_takes_one_way_for_all_prompts(self):
        # On each prompt alone another way is best: 4 and 1.5. Together copies have 1.41, the window 1.5.
        best, speed, (ratio, low, high) = bench_data.hindsight(self.ROWS)
        self.assertEqual(best, "static/4/a=w16+64")
        self.assertAlmostEqual(speed, 1.5)
        self.assertAlmostEqual(ratio, (4 * 1.2) ** 0.5 / 1.5)
        self.assertLess(low, ratio)
        self.assertGreater(high, ratio)

    def test_plain_decoding_is_a_way_in_hindsight(self):
        slow = [{**row, "speedup": {"mean": 0.5, "low": None, "high": None}} for row in self.ROWS]
        best, speed, (ratio, _, _) = bench_data.hindsight(slow)
        self.assertEqual((best, speed), (bench_data.PLAIN, 1))
        self.assertAlmostEqual(ratio, 0.5)

    def test_hindsight_leaves_out_other_plans_and_unmeasured_ways(self):
        rows = [*self.ROWS, told("static/4/a=w16+64;m3=skip", 9, self.CALM, "calm"),
                told("static/4/a=w16+64;m3=skip", 9, self.LOOP, "loop"), told("static/4/a=w16+128", 9, self.CALM, "calm")]
        self.assertEqual(bench_data.hindsight(rows)[0], "static/4/a=w16+64")
        self.assertIsNone(bench_data.hindsight([row for row in self.ROWS if row["strategy"] != "lookup"]))
        self.assertIsNone(bench_data.hindsight([row for row in self.ROWS if row["strategy"] != "knapspec"]))

    def test_hindsight_has_a_row_for_each_class(self):
        table, text = bench_tables.hindsight([self.file(), self.file("cpu-parts-code.json")])
        self.assertRegex(table, r"\| code \| 2 \| 0\.55 \| 2\.19 \([^|]*\) \| 1\.50, `static/4/a=w16\+64` \| 1\.46 \([^|]*\) "
                                r"\| 0\.80 \|")
        self.assertIn("Without loops: without prompts whose share is below 0.5 (1 of 2).", text)
        self.assertIn("fastest of `lookup`, the best fixed window and plain decoding on the same prompts", text)
        self.assertIn("is 1.46 in the mean, 1.46 at the lowest", text)
        with self.assertRaises(ValueError):
            bench_tables.hindsight([self.file(rows=[bench_row("lookup", 1)])])

    def test_tables_have_columns_without_loops_and_of_the_texts(self):
        files = [self.file()]
        self.assertRegex(bench_tables.strategies(files)[0], r"\| `lookup` \| 1\.41 \([^|]*\) \| 0\.50 \|.*\| 0\.55 \|\n")
        self.assertIn("`knapspec` over it: 1.46 (", bench_tables.strategies(files)[1])
        by_class = bench_tables.strategies_by_class(files)[0]
        self.assertRegex(by_class, r"\| `lookup` \| 1\.41 \([^|]*\) \| 0\.50 \|")
        self.assertRegex(by_class, r"\| `knapspec` / best simple way \| 1\.46 \([^|]*\) \| 0\.80 \|  \|")
        self.assertIn("| distinct trigrams | 0.55 | 0.90 |  |", by_class)
        self.assertRegex(bench_tables.data_sets(files)[0], r"\| `lookup` \| 1\.41 \([^|]*\) / 0\.50 / ")
        self.assertRegex(bench_tables.data_sets(files)[0], r"\| distinct trigrams \| 0\.55 \|")
        self.assertRegex(bench_tables.expectations(files)[0], r"\| chat \| 2 \| 100 \| 0\.55 \| 2\.19 \([^|]*\) \| 1\.20 \|")
        self.assertRegex(bench_tables.tasks(files)[0], r"\| some: qa \| 2 \| 0\.55 \|.*\| 1\.20 \| 1\.46 \(")

    def test_context_without_loops_is_of_our_last_strategy(self):
        rows = [*self.ROWS, told("llama", 0.5, self.LOOP, "loop"), told("llama", 0.5, self.CALM, "calm")]
        rows = [{**row, "tokens_per_second": 100 * row["speedup"]["mean"]} for row in rows]
        table, _ = bench_tables.context([self.file(rows=rows)])
        self.assertRegex(table, r"\| up to 64 \| 0\.55 \|.*\| 2\.40 \| 1\.46 \([^|]*\) \|$")


class MarksTest(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.root = Path(folder.name)
        (self.root / "docs/results/data").mkdir(parents=True)
        self.write_data(DECODE)
        self.readme = self.root / "README.md"
        self.readme.write_text("# A\n\n<!-- table: cpu-plain -->\n<!-- end -->\n\nB\n")

    def write_data(self, data, name="cpu-decode.json"):
        (self.root / "docs/results/data" / name).write_text(json.dumps(data))

    def tables(self, *arguments):
        done = subprocess.run([sys.executable, ROOT / "docs/tables.py", "--root", self.root, *arguments],
                              capture_output=True, text=True)
        return done.returncode, done.stdout + done.stderr

    def expect_fault(self, words):
        status, output = self.tables("--check")
        self.assertEqual(status, 1)
        self.assertIn(words, output)
        self.assertEqual(output.count("\n"), 1, "one line")

    def test_tables_are_written_between_the_marks_and_pass_the_check(self):
        self.assertEqual(self.tables(), (0, "tables: rewrote README.md\n"))
        text = self.readme.read_text()
        self.assertTrue(text.startswith("# A\n\n<!-- table: cpu-plain -->\n\n| tokens per second |"))
        self.assertTrue(text.endswith("\n\n<!-- end -->\n\nB\n"))
        for words in ("2 threads of Fast CPU (avx2); m.gguf.", "at most 8.0 % of it",
                      "- [cpu-decode.json](docs/results/data/cpu-decode.json): `decode_bench m.gguf --json d.json`"):
            self.assertIn(words, text)
        self.assertEqual(self.tables(), (0, ""), "a second run changes nothing")
        self.assertEqual(self.tables("--check")[0], 0)

    def test_a_first_run_is_told(self):
        self.write_data({**DECODE, "cell": {"command": "decode_bench", "first": "knap bench --limit 5"}})
        self.tables()
        self.assertIn("`decode_bench m.gguf --json d.json` in a new cache folder, after `knap bench --limit 5`\n", self.readme.read_text())

    def test_a_number_edited_by_hand_is_noticed(self):
        self.tables()
        self.readme.write_text(self.readme.read_text().replace("| 3.00 (", "| 3.10 (", 1))
        self.expect_fault("README.md:7: a table differs from its data (make tables): expected "
                          "`| decoding after 16 tokens | 500 | 167 | 3.00 (2.61-3.09) |`, found")

    def test_new_data_are_noticed(self):
        self.tables()
        self.write_data(program_file([decode_row(16, [10], [30], [40])]))
        self.expect_fault("README.md:7: a table differs from its data")

    def test_links_lead_from_where_the_document_is(self):
        (self.root / "docs/results/a.md").write_text("<!-- table: cpu-plain -->\n<!-- end -->\n")
        self.tables()
        self.assertIn("[cpu-decode.json](data/cpu-decode.json)", (self.root / "docs/results/a.md").read_text())

    def test_missing_and_damaged_data_are_named(self):
        self.tables()
        self.write_data({"format": 7})
        self.expect_fault("expected `format` 1 and `rows`")
        self.write_data({**bench_file([bench_row("llama", 1)]), "is_complete": False})
        self.expect_fault("found an interrupted one: continue with --resume")
        self.write_data(program_file([{"what": "decode", "depth": 3}]))
        self.expect_fault("expected a file for the table race, found KeyError('times_ms')")
        (self.root / "docs/results/data/cpu-decode.json").unlink()
        self.expect_fault("docs/results/data/cpu-decode.json: expected a data file, found none (commands: docs/tables")

    def test_marks_must_make_sense(self):
        self.readme.write_text("<!-- table: no-such -->\n<!-- end -->\n")
        self.expect_fault("README.md: expected a table of docs/tables.py --list, found no-such")
        self.readme.write_text("<!-- table: cpu-plain -->\n")
        self.expect_fault("README.md: expected `<!-- end -->` after the last table, found none")
        self.readme.write_text("a\n<!-- end -->\n")
        self.expect_fault("README.md:2: expected `<!-- table: NAME -->`, found `<!-- end -->`")

    def test_a_marker_without_any_data_fails_the_check(self):
        for path in (self.root / "docs/results/data").iterdir():
            path.unlink()
        (self.root / "docs/results/data").rmdir()
        self.expect_fault("docs/results/data/cpu-decode.json: expected a data file, found none")

    def test_a_table_that_may_be_missing_says_that_nothing_was_measured(self):
        self.readme.write_text("<!-- table: projection-costs -->\n<!-- end -->\n")
        self.assertEqual(self.tables(), (0, "tables: rewrote README.md\n"))
        self.assertIn("\nNot measured yet. `docs/tables.py --list` has the command.\n", self.readme.read_text())
        self.assertEqual(self.tables("--check")[0], 0)
        self.write_data(DECODE, "gpu-shapes.json")
        self.expect_fault('expected rows of `what` "shape", found none')

    def test_list_names_missing_data(self):
        status, output = self.tables("--list")
        self.assertEqual(status, 0)
        self.assertIn("cpu-plain (in use): decode_bench", output)
        self.assertIn("docs/results/data/cpu-verify.json (missing)", output)


@unittest.skipUnless(BUILD, "needs a build")
class ProgramsTest(unittest.TestCase):
    """The tables read what the programs write."""

    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = Path(folder.name)

    def run_program(self, name, *arguments):
        done = subprocess.run([Path(BUILD) / name, *map(str, arguments)], capture_output=True, text=True)
        self.assertEqual(done.returncode, 0, done.stderr)

    def measure(self, name, *arguments):
        path = self.folder / f"{name}.json"
        self.run_program(name, TINY_MODEL, *arguments, "--json", path)
        return bench_data.load(path)

    def test_decode_bench(self):
        file = self.measure("decode_bench", "--prefill", "8", "--depths", "16", "--threads", "1")
        self.assertEqual(bench_data.command(file),
                         "decode_bench tiny.gguf --prefill 8 --depths 16 --threads 1 --json decode_bench.json")
        table, _ = bench_tables.race([file])
        self.assertIn("| decoding after 16 tokens |", table)
        self.assertIn("| reading a prompt of 8 tokens |", table)
        self.assertIn("1 thread of ", bench_data.machine(file))

    def test_verify_bench(self):
        table, _ = bench_tables.verify([self.measure("verify_bench", "--threads", "1")])
        self.assertIn("| tiny.gguf, f16 cache | 16 |", table)

    def test_batch_bench(self):
        path = self.folder / "batch.json"
        self.run_program("batch_bench", "-m", TINY_MODEL, "-t", 1, "--prompts", "random", "--lengths", "8..12", "-n", 4, "-r", 2,
                         "--sessions", "1,2", "--prefix-tokens", 80, "--newcomer-tokens", 100, "--json", path)
        file = bench_data.load(path)
        rows = {(row["question"], row.get("sessions")): row for row in file["rows"]}
        self.assertEqual([*rows], [("throughput", 1), ("throughput", 2), ("prefix", None), ("arrival", None), ("direct", None),
                                   ("memory", 8)])
        for row in rows["throughput", 2], rows["arrival", None]:
            self.assertEqual({name: len(times) for name, times in row["times_ms"].items()},
                             {"autoregressive": 2, "knapspec": 2, "libllama": 2})
            self.assertRegex(row["libllama"], "^flash=(on|off) unified=(on|off)$")
        self.assertEqual(rows["throughput", 2]["n_tokens"], 8)
        self.assertEqual({*rows["prefix", None]["times_ms"]}, {"alone", "all"})

    def test_shape_bench(self):
        path = self.folder / "shapes.json"
        models = self.folder / "models"
        models.mkdir()
        self.run_program("shape_bench", "--shapes", "tiny-llama,tiny-qwen3", "--types", "F16", "--layers", 4, "--depths", "0,64",
                         "--rows", "1,3", "--device", "CPU", "--folder", models, "--json", path)
        self.assertEqual([*models.iterdir()], [], "models are deleted")
        rows = bench_data.rows_of(bench_data.load(path), "shape")
        self.assertEqual([(row["shape"], row["type"], row["n_layers"], row["depth"]) for row in rows],
                         [(shape, "F16", 4, depth) for shape in ("tiny-llama", "tiny-qwen3") for depth in (0, 64)])
        for row in rows:
            self.assertEqual([*row["times_ms"]],
                             ["1 row, 1 layer", "3 rows, 1 layer", "1 row, 2 layers", "3 rows, 2 layers", "1 row, 4 layers",
                              "3 rows, 4 layers", "draft, full", "draft, a=skip", "draft, m=skip", "draft, a=w16+1024",
                              "draft, a=w16+1024,l1+3=skip"])

    def test_shape_bench_refuses_what_it_cannot_time(self):
        for words, arguments in (("--shape: expected one of", ["--shapes", "none"]),
                                 ("--depths: expected numbers from 0 to 1024, found 16,4096", ["--depths", "4096,16"]),
                                 ("--rows: expected numbers from 1 to 64, found 0", ["--rows", "0"]),
                                 ("--exits: expected numbers from 1 to 8, found 9", ["--exits", "9"]),
                                 ("--plans: expected a window", ["--plans", "a=w"]),
                                 ("--layers: expected 1 or more, found 0", ["--layers", "0"]),
                                 ("--kernels own: expected", ["--kernels", "own"])):
            defaults = {"--shapes": "tiny", "--types": "F16", "--depths": "16", "--folder": str(self.folder)}
            defaults |= dict(zip(arguments[::2], arguments[1::2]))
            done = subprocess.run([Path(BUILD) / "shape_bench", *(word for pair in defaults.items() for word in pair)],
                                  capture_output=True, text=True)
            self.assertEqual(done.returncode, 1)
            self.assertIn(f"shape_bench: error: {words}", done.stderr)
            self.assertEqual(done.stderr.count("\n"), 1, "one line")

    def test_knap_bench_and_its_command(self):
        path = self.folder / "bench.json"
        self.run_program("knap", "bench", "-m", TINY_MODEL, "-d", "8,24", "-n", "8", "-r", "2", "-t", "1",
                         "--strategies", "lookup,static/2/a=w1+4", "--temp", "0.5", "-o", path)
        file = bench_data.load(path)
        table, text = bench_tables.context([file])
        self.assertIn("| 24 |", table)
        self.assertIn("2 prompts, 2 turns each", text)
        self.assertIn("| `lookup` |", bench_tables.strategies([file])[0])
        page = self.folder / "report.html"
        self.run_program("knap", "report", path, "-o", page)
        self.assertIn(bench_data.command(file), html.unescape(page.read_text()))


if __name__ == "__main__":
    unittest.main(argv=[sys.argv[0], *(["ProgramsTest"] if BUILD else [])])
