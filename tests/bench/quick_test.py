"""Tests of bench/quick: ratios of made-up measurements, and what is said of them beside stored ones. With arguments BUILD and
MODEL also with the programs themselves."""
import contextlib
import io
import json
import sys
import tempfile
import unittest
from pathlib import Path
from unittest import mock

sys.dont_write_bytecode = True
ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "bench/quick"))
import measure  # noqa: E402
import run  # noqa: E402
from compare import Line, compared, described, read, slug, stored_for, summary, table  # noqa: E402
from measure import MeasureError, Ratio, ratios, setting, to_json  # noqa: E402

BUILD, MODEL = sys.argv[1:3] if len(sys.argv) > 2 else (None, None)


def files(knap_ms=1.0, four_ms=2.0, int8_ms=0.8, draft_ms=50.0):
    """Those of a round."""
    host = {"cpu": "AMD EPYC(TM) 9", "isa": "avx512"}
    peers = {"llama, flash off": [4.0, 4.0, 4.4], "llama, flash on": [2.0, 2.1, 2.0]}

    def race(what, depth):
        return {"what": what, "depth": depth, "times_ms": {"knap": [knap_ms, knap_ms, 1.0]} | peers}

    def verify(one_ms, depth):
        return {"what": "verify", "depth": depth, "times_ms": {"1": [one_ms] * 3, "4": [four_ms] * 3, "8": [4.0] * 3}}
    return {"decode": {"name": "decode.json", "knap": "1.0", "host": host, "threads": 2,
                       "rows": [race("prefill", 512), race("decode", 16), race("decode", 2048)]},
            "rows-f16": {"name": "f16.json", "rows": [verify(1.0, 16), verify(1.0, 2048)]},
            "rows-q8_0": {"name": "q8_0.json", "rows": [verify(1.0, 16), verify(int8_ms, 2048)]},
            "texts": {"rows": [{"strategy": "autoregressive", "id": "story", "turns": [{"plain_ms": 100, "decode_ms": 100}]},
                               {"strategy": "knapspec", "id": "story", "turns": [{"plain_ms": 100, "decode_ms": draft_ms}] * 2}]}}


class RatiosTest(unittest.TestCase):
    def test_more_is_better(self):
        found = ratios([files()])
        self.assertEqual({name: ratio.median for name, ratio in found.items()}, {
            "prefill of 512, knap / libllama": 2.0, "decoding at 16, knap / libllama": 2.0,
            "decoding at 2048, knap / libllama": 2.0, "4 rows at 16, together / one by one": 2.0,
            "8 rows at 16, together / one by one": 2.0, "4 rows at 2048, together / one by one": 2.0,
            "8 rows at 2048, together / one by one": 2.0, "a row at 16, int8 / f16 cache": 1.0,
            "a row at 2048, int8 / f16 cache": 1.25, "text story, knapspec / plain": 2.0})

    def test_rounds_are_put_together(self):
        found = ratios([files(), files(four_ms=4.0), files(four_ms=4.0)])["4 rows at 16, together / one by one"]
        self.assertEqual((found.n, found.median), (9, 1.0))
        self.assertEqual(found.spread, 0.5)

    def test_the_kind_of_machine(self):
        found = setting([files()], "/a/m.gguf")
        self.assertEqual(found, {"cpu": "AMD EPYC(TM) 9", "isa": "avx512", "threads": 2, "model": "m.gguf"})
        self.assertEqual(slug(found), "amd-epyc-9-avx512-2-threads.json")


def verdict(now, stored, now_spread=0.01, stored_spread=0.01):
    return Line("a", Ratio(now, now_spread, 9), Ratio(stored, stored_spread, 9)).verdict


class CompareTest(unittest.TestCase):
    def test_what_moved(self):
        self.assertEqual(verdict(2, 2), "")
        self.assertEqual(verdict(1.92, 2), "", "4 % are below the floor")
        self.assertEqual(verdict(1.88, 2), "slower")
        self.assertEqual(verdict(2.12, 2), "faster")

    def test_noise_hides_changes(self):
        self.assertEqual(verdict(1.7, 2, 0.08, 0.08), "", "15 % in a noise of 16 %")
        self.assertEqual(verdict(1.66, 2, 0.08, 0.08), "slower")
        self.assertEqual(verdict(1.66, 2, 0.2, 0.08), "noisy")

    def test_exit_status(self):
        good = {"a": Ratio(2, 0.01, 9), "b": Ratio(3, 0.01, 9)}
        self.assertEqual(summary(compared(good, good)), (0, "nothing became slower beyond noise"))
        worse = good | {"b": Ratio(2, 0.01, 9)}
        self.assertEqual(summary(compared(worse, good)), (1, "slower beyond noise: b"))
        self.assertEqual(summary(compared(good, worse)), (0, "nothing became slower beyond noise; faster: b"))
        self.assertEqual(summary(compared(good | {"c": Ratio(1, 0, 1)}, good))[0], 0, "a new one")
        self.assertEqual(summary(compared({"a": good["a"]}, good)), (1, "not measured any more: b"))

    def test_the_table_has_both_sides(self):
        lines = compared({"a": Ratio(1.5, 0.02, 9), "new": Ratio(1, 0, 1)}, {"a": Ratio(2, 0.031, 9)})
        rows = [row.split("  ") for row in table(lines).splitlines()]
        self.assertEqual([cell.strip() for cell in rows[1] if cell], ["a", "1.50 ±2 %", "2.00 ±3 %", "-25 %", "5 %", "slower"])
        self.assertEqual([cell.strip() for cell in rows[2] if cell.strip()], ["new", "1.00 ±0 %", "not stored"])


class StoredTest(unittest.TestCase):
    KIND = {"cpu": "a CPU", "isa": "avx2", "threads": 4, "model": "m.gguf"}

    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = Path(folder.name)

    def test_what_is_stored_is_read(self):
        self.assertIsNone(stored_for(self.folder, self.KIND))
        now = {"a": Ratio(2.0, 0.02, 9)}
        (self.folder / slug(self.KIND)).write_text(to_json(described(self.KIND, "1.0", now)))
        self.assertEqual(stored_for(self.folder, self.KIND), now)

    def test_other_models_and_damaged_files_are_refused(self):
        path = self.folder / slug(self.KIND)
        path.write_text(to_json(described(self.KIND | {"model": "other.gguf"}, "1.0", {})))
        with self.assertRaisesRegex(MeasureError, f"{path}: expected `model` 'm.gguf', found 'other.gguf'"):
            stored_for(self.folder, self.KIND)
        for text in ("{", "[]", '{"ratios": {"a": 1}}', "{}"):
            path.write_text(text)
            with self.assertRaisesRegex(MeasureError, f"{path}: expected ratios"):
                stored_for(self.folder, self.KIND)

    def test_stored_ratios_of_this_repository_are_whole(self):
        for path in run.STORED.glob("*.json"):
            data, found = read(path)
            self.assertEqual(path.name, slug(data))
            self.assertTrue(found)

    def call(self, *arguments, now=None):
        """Exit status and output of a run on made-up measurements."""
        output = io.StringIO()
        with mock.patch.object(run, "run_round", lambda *_: now or files()), contextlib.redirect_stdout(output):
            status = run.main(["--model", "/a/m.gguf", "--stored", str(self.folder), *arguments])
        return status, output.getvalue()

    def test_a_run(self):
        status, text = self.call()
        self.assertEqual(status, 0)
        self.assertIn("nothing is stored for this kind of machine (amd-epyc-9-avx512-2-threads.json): "
                      "`make bench-quick BENCH_QUICK_ARGS=--store` does that", text)
        status, text = self.call("--store")
        self.assertEqual((status, [path.name for path in self.folder.iterdir()]), (0, ["amd-epyc-9-avx512-2-threads.json"]))
        status, text = self.call()
        self.assertEqual((status, text.splitlines()[-1]), (0, "nothing became slower beyond noise"))
        status, text = self.call(now=files(draft_ms=80.0))
        self.assertEqual((status, text.splitlines()[-1]), (1, "slower beyond noise: text story, knapspec / plain"))

    def test_a_program_that_fails_is_one_line(self):
        with self.assertRaisesRegex(MeasureError, "^decode_bench: expected exit code 0, found 3: no such model$"):
            program = self.folder / "decode_bench"
            program.write_text("#!/bin/sh\necho begins\necho no such model >&2\nexit 3\n")
            program.chmod(0o755)
            measure.run_round(self.folder, "m.gguf", 1, self.folder, lambda _: None)
        with self.assertRaisesRegex(MeasureError, "^/none/decode_bench: expected a program of the build: No such file or directory$"):
            measure.run_round("/none", "m.gguf", 1, self.folder, lambda _: None)


@unittest.skipUnless(BUILD, "needs the programs")
class ProgramsTest(unittest.TestCase):
    def test_their_files_have_every_ratio(self):
        with tempfile.TemporaryDirectory() as folder:
            found = ratios([measure.run_round(BUILD, MODEL, 1, folder, lambda _: None)])
        # The small model has no context of 2,048 tokens, where libllama still runs.
        kinds = [name.rsplit(", ", 1)[1] for name in found]
        self.assertEqual(set(kinds), {"knap / libllama", "together / one by one", "int8 / f16 cache", "knapspec / plain"})
        self.assertEqual(kinds.count("knap / libllama"), 3)
        self.assertTrue(all(ratio.median > 0 for ratio in found.values()), json.dumps(list(found)))


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
