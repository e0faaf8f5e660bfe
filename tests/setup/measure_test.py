#!/usr/bin/env python3
"""docs/measure.py with a program that only pretends to measure, and what docs/cells.py promises about the cells.

    measure_test.py [BUILD TINY_MODEL]    one cell with the real knap of a build"""
import contextlib
import io
import json
import os
import re
import shlex
import signal
import subprocess
import sys
import tempfile
import time
import unittest
from pathlib import Path

sys.dont_write_bytecode = True
ROOT = Path(__file__).resolve().parent.parent.parent
sys.path.insert(0, str(ROOT / "docs"))
import bench_data  # noqa: E402
import cells  # noqa: E402
import measure  # noqa: E402
import tables  # noqa: E402

BUILD, TINY_MODEL = (sys.argv[1:] + [None, None])[:2]
SCRIPT = ROOT / "docs/measure.py"

# Like `knap bench`: a row for each of 16 prompts, kept after every prompt, and an interrupt ends it with code 130. The file
# `behaviour` says how long a prompt takes, how even plain decoding is with one turn, and the exit code.
FAKE = r"""#!/usr/bin/env python3
import json, os, pathlib, signal, sys, time
words = sys.argv[1:]
behaviour = json.loads(pathlib.Path("behaviour").read_text())
value = lambda flag: words[words.index(flag) + 1] if flag in words else None
output = value("--json") or value("-o")
folder = os.environ.get("KNAP_CACHE_DIR")
learned = pathlib.Path(folder or "none", "learned")
if output is None and words[0] == "bench":  # a first run
    learned.write_text(" ".join(words))
    sys.exit()
with open("log", "a") as log:
    print(*words, file=log)
with open("log-folders", "a") as log:
    print(folder, learned.read_text() if learned.exists() else "nothing", file=log)
if words[0] == "make-model":
    pathlib.Path(value("-o")).write_text("a model")
    sys.exit()
if behaviour["status"]:
    sys.exit(behaviour["status"])
stopped = []
signal.signal(signal.SIGINT, lambda *_: stopped.append(1))
n_turns = int(value("-r") or 0)
file = {"format": 1, "rows": [], "command": "decode_bench", "settings": {"repeat": n_turns}, "is_complete": False}
if value("--resume"):
    file = json.loads(pathlib.Path(value("--resume")).read_text())
    assert file["settings"]["repeat"] == n_turns, "another benchmark"
for i in range(len(file["rows"]), 16):
    time.sleep(behaviour["seconds"])
    if stopped:
        break
    mean = 1 + behaviour["spread"] / max(n_turns, 1) ** 0.5 * (1 if i % 2 else -1)
    file["rows"].append({"strategy": "autoregressive", "speedup": {"mean": mean, "low": None, "high": None}, "rounds": 1,
                         "n_drafted": 0, "n_accepted": 0, "mean_accepted_length": 1, "tokens_per_second": 1})
    pathlib.Path(output).write_text(json.dumps(file))
file["is_complete"] = len(file["rows"]) == 16
pathlib.Path(output).write_text(json.dumps(file))
sys.exit(130 if stopped else 0)
"""
EVEN = 0.01


class MeasureTest(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.root = Path(folder.name)
        self.out = self.root / "docs/results/data"
        self.prompts = self.root / "prompts"
        for path in (self.out, self.prompts, self.root / "build"):
            path.mkdir(parents=True)
        for name in ("knap", "decode_bench"):
            program = self.root / "build" / name
            program.write_text(FAKE)
            program.chmod(0o755)
        for name in ("gsm8k.jsonl", "humaneval.jsonl", "model.gguf"):
            (self.prompts / name).write_text("{}\n")
        (self.root / "models").mkdir()
        (self.root / "models/kangaroo-smollm2-135m.gguf").write_text("an adapter")
        self.behave()

    def behave(self, seconds=0.0, spread=EVEN, status=0):
        (self.root / "behaviour").write_text(json.dumps({"seconds": seconds, "spread": spread, "status": status}))

    def words(self, *arguments):
        return [sys.executable, str(SCRIPT), "--root", str(self.root), "--model", str(self.prompts / "model.gguf"),
                "--data", str(self.prompts), *arguments]

    def measure(self, *arguments):
        done = subprocess.run(self.words(*arguments), capture_output=True, text=True)
        return done.returncode, done.stdout + done.stderr

    def runs(self):
        log = self.root / "log"
        return log.read_text().splitlines() if log.exists() else []

    def load(self, name):
        return json.loads((self.out / f"{name}.json").read_text())

    def test_a_cell_is_measured_once(self):
        status, output = self.measure("--cells", "cpu-parts-math")
        self.assertEqual(status, 0, output)
        self.assertIn("cell 1 of 1: cpu-parts-math; 0 s used", output)
        cell = next(cell for cell in cells.CELLS if cell.name == "cpu-parts-math")
        self.assertTrue(cell.wrote(self.load("cpu-parts-math")["cell"]))
        self.assertIn(f"--data {self.prompts}/gsm8k.jsonl --skip 5 --limit 16", self.runs()[0])
        self.assertFalse((self.out / ".partial").exists())
        status, output = self.measure("--cells", "cpu-parts-math")
        self.assertEqual((status, len(self.runs())), (0, 1), output)
        self.assertIn("1 of 1 cells are measured already", output)

    def test_a_file_of_another_command_is_measured_again(self):
        self.measure("--cells", "cpu-parts-math")
        file = self.load("cpu-parts-math")
        file["cell"]["command"] += " --temp 1"
        (self.out / "cpu-parts-math.json").write_text(json.dumps(file))
        self.assertIn("cpu-parts-math: of another command\n", self.measure("--list", "--cells", "cpu-parts-math")[1])
        self.measure("--cells", "cpu-parts-math")
        self.assertEqual(len(self.runs()), 2)
        self.assertIn("cpu-parts-math: measured\n", self.measure("--list", "--cells", "cpu-parts-math")[1])

    def test_a_file_after_another_first_run_is_measured_again(self):
        self.measure("--cells", "cpu-parts-math")
        file = self.load("cpu-parts-math")
        del file["cell"]["first"]
        (self.out / "cpu-parts-math.json").write_text(json.dumps(file))
        self.assertIn("cpu-parts-math: of another command\n", self.measure("--list", "--cells", "cpu-parts-math")[1])

    def test_a_second_run_knows_what_the_first_learned_and_nothing_else(self):
        self.behave(spread=0.1)  # the command starts twice
        os.environ["KNAP_CACHE_DIR"] = "own"
        self.addCleanup(os.environ.pop, "KNAP_CACHE_DIR")
        self.assertEqual(self.measure("--cells", "cpu-decode,cpu-parts-math")[0], 0)
        *seconds, other = (line.split(" ", 1) for line in sorted((self.root / "log-folders").read_text().splitlines()))
        self.assertEqual(other, ["own", "nothing"])
        self.assertEqual(len({folder for folder, _ in seconds}), 2)
        for folder, learned in seconds:
            self.assertFalse(Path(folder).exists(), "it is deleted")
            self.assertIn("gsm8k.jsonl --limit 5 -n 192 -r 1 --strategies knapspec --profile none --memory on", learned)

    def test_turns_are_added_until_plain_decoding_is_level(self):
        # 16 prompts: the interval is about 0.53 times the spread.
        self.behave(spread=0.1)
        self.measure("--cells", "cpu-parts-math")
        turns = [int(re.search(r"-r (\d+)", run)[1]) for run in self.runs()]
        self.assertEqual(turns[0], 2)
        self.assertEqual(len(turns), 2)
        self.assertIn(turns[1], (3, 4))
        self.assertLessEqual(self.load("cpu-parts-math")["cell"]["unevenness"], 0.03)

    def test_turns_have_a_limit(self):
        self.behave(spread=0.6)
        status, output = self.measure("--cells", "cpu-parts-math")
        self.assertEqual(status, 0, output)
        self.assertIn("-r 8", self.runs()[-1])
        self.assertGreater(self.load("cpu-parts-math")["cell"]["unevenness"], 0.03)

    def interrupted(self, signal_, cell):
        """Stops a run after some prompts. Returns its exit code and what it said."""
        with subprocess.Popen(self.words("--cells", f"{cell},cpu-parts-code"), stderr=subprocess.PIPE, text=True,
                              start_new_session=True) as process:
            partial = self.out / f".partial/{cell}.json"
            deadline = time.monotonic() + 60
            while not partial.exists() and time.monotonic() < deadline:
                time.sleep(0.02)
            self.assertTrue(partial.exists(), "no prompt was measured in time")
            process.send_signal(signal_)
            output = process.stderr.read()
        return process.returncode, output

    def test_an_interrupted_cell_goes_on_where_it_stopped(self):
        for signal_ in (signal.SIGINT, signal.SIGTERM):
            with self.subTest(signal_.name):
                (self.root / "log").unlink(missing_ok=True)
                self.behave(seconds=1)  # a prompt, so that some are left when the signal comes
                status, output = self.interrupted(signal_, "cpu-strategies-math")
                self.assertEqual(status, 130, output)
                self.assertIn("stopped in cpu-strategies-math; the same command goes on there\n", output)
                self.assertFalse((self.out / "cpu-strategies-math.json").exists(), "no half-written file")
                begun = json.loads((self.out / ".partial/cpu-strategies-math.json").read_text())
                self.assertTrue(0 < len(begun["rows"]) < 16)
                self.behave()
                status, output = self.measure("--cells", "cpu-strategies-math")
                self.assertEqual(status, 0, output)
                self.assertIn("--resume", self.runs()[-1])
                self.assertEqual(len(self.load("cpu-strategies-math")["rows"]), 16)
                (self.out / "cpu-strategies-math.json").unlink()

    def test_an_interrupted_cell_with_a_first_run_begins_again(self):
        self.behave(seconds=1)
        status, output = self.interrupted(signal.SIGINT, "cpu-parts-math")
        self.assertEqual(status, 130, output)
        self.behave()
        status, output = self.measure("--cells", "cpu-parts-math")
        self.assertEqual(status, 0, output)
        self.assertNotIn("--resume", self.runs()[-1], "what the first half had learned is gone")
        self.assertEqual(len(self.load("cpu-parts-math")["rows"]), 16)

    def test_a_program_that_cannot_be_started_fails_its_cell_alone(self):
        (self.root / "build/decode_bench").chmod(0o644)
        status, output = self.measure("--cells", "cpu-decode,cpu-parts-math")
        self.assertEqual(status, 1, output)
        self.assertIn("cpu-decode failed: build/decode_bench cannot be started: Permission denied", output)
        self.assertEqual(len(self.load("cpu-parts-math")["rows"]), 16)

    def test_an_interrupted_cell_keeps_its_number_of_turns(self):
        partial = self.out / ".partial"
        partial.mkdir()
        commands = next(cell.commands for cell in cells.CELLS if cell.name == "cpu-parts-math")
        (partial / "cpu-parts-math.notes").write_text(json.dumps({**commands, "n_turns": 5, "seconds": 60}))
        self.measure("--cells", "cpu-parts-math")
        self.assertIn("-r 5", self.runs()[0])
        self.assertGreaterEqual(self.load("cpu-parts-math")["cell"]["seconds"], 60)

    def test_what_another_command_began_is_not_continued(self):
        partial = self.out / ".partial"
        partial.mkdir()
        (partial / "cpu-parts-math.json").write_text("{}")
        (partial / "cpu-parts-math.notes").write_text(json.dumps({"command": "old", "n_turns": 5, "seconds": 60}))
        self.assertEqual(self.measure("--cells", "cpu-parts-math")[0], 0)
        self.assertNotIn("--resume", self.runs()[0])

    def test_a_failed_cell_does_not_stop_the_others(self):
        self.behave(status=3)
        status, output = self.measure("--cells", "cpu-parts-math,cpu-parts-code")
        self.assertEqual((status, len(self.runs())), (1, 2), output)
        self.assertIn("cpu-parts-math failed: build/knap ended with exit code 3\n", output)
        self.assertIn("measured 0 of 2 cells", output)

    def test_what_is_missing_takes_one_line(self):
        status, output = self.measure()
        self.assertEqual(status, 1)
        missing = [line for line in output.splitlines() if "left out" in line]
        self.assertIn("results: left out cpu-verify: expected the program build/verify_bench, found none (make)", missing)
        self.assertTrue(any(f"expected the file {self.prompts}/govreport.jsonl, found none" in line for line in missing))
        self.assertFalse(any("gpu" in line for line in missing), "cells of another device are not asked for")
        self.assertIn("build-cuda/device_bench, found none (make CUDA=1)", self.measure("--cells", "gpu-steps-default")[1])
        for line in missing:
            self.assertIn("expected", line)

    def test_without_prompts_it_says_so(self):
        done = subprocess.run([sys.executable, str(SCRIPT), "--root", str(self.root), "--cells", "cpu-parts-*"],
                              capture_output=True, text=True)
        self.assertEqual(done.returncode, 1)
        self.assertIn("left out cpu-parts-chat, cpu-parts-math, cpu-parts-code and 2 more: expected DATA=FOLDER", done.stderr)

    def test_models_with_random_weights_are_written_once(self):
        for _ in range(2):
            self.assertEqual(self.measure("--cells", "cpu-shape-gpt-oss-20b")[0], 0)
            (self.out / "cpu-shape-gpt-oss-20b.json").unlink()
        self.assertEqual([run.split()[0] for run in self.runs()].count("make-model"), 1)

    def test_threads_are_for_cells_that_name_none(self):
        self.measure("--cells", "cpu-parts-math,cpu-decode,cpu-2-cores-decode", "-t", "3")
        by_cell = {re.search(r"partial/([\w-]+)\.json", run)[1]: run for run in self.runs()}
        self.assertIn("-t 3", by_cell["cpu-parts-math"])
        self.assertIn("--threads 3", by_cell["cpu-decode"])
        self.assertNotIn("3 --threads 3", by_cell["cpu-2-cores-decode"])
        self.assertEqual(by_cell["cpu-2-cores-decode"].count("--threads"), 1)

    def test_wrong_arguments_are_refused(self):
        self.assertEqual(self.measure("--cells", "cpu-none"), (2, "results: error: --cells: expected a cell of --list, "
                                                                  "found cpu-none\n"))
        self.assertIn("expected a part such as 2/3, found 4/3", self.measure("--part", "4/3")[1])

    def test_the_rest_is_estimated_from_earlier_times(self):
        campaign = measure.Campaign(measure.parse(["--root", str(self.root)]))
        rest = [cell for cell in cells.CELLS if cell.name in ("cpu-parts-math", "cpu-parts-code")]
        self.assertEqual(campaign.estimate(rest, []), "the rest is not known yet")
        self.assertEqual(campaign.estimate(rest, [600]), "about 20 min left")
        (self.out / "cpu-parts-code.json").write_text(json.dumps({"cell": {"command": "old", "seconds": 6000}}))
        self.assertEqual(campaign.estimate(rest, [600]), "about 2 h 35 min left")


class CellsTest(unittest.TestCase):
    def test_parts_are_all_cells_once(self):
        whole = measure.select(measure.parse([]))
        parts = [measure.select(measure.parse(["--part", f"{i}/3"])) for i in (1, 2, 3)]
        self.assertEqual(sorted(cell.name for part in parts for cell in part), sorted(cell.name for cell in whole))
        self.assertLessEqual(max(map(len, parts)) - min(map(len, parts)), 1)

    def test_every_cell_has_a_table_and_every_table_its_cells(self):
        for name, table in tables.TABLES.items():
            for pattern in table.files:
                self.assertTrue(cells.writing(pattern), f"{name}: no cell writes {pattern}")
        used = {cell.name for table in tables.TABLES.values() for pattern in table.files for cell in cells.writing(pattern)}
        self.assertEqual({cell.name for cell in cells.CELLS} - used, set())

    def test_every_command_writes_its_file(self):
        for cell in cells.CELLS:
            self.assertEqual(re.findall(r"OUT/(\S+)", cell.command), [cell.file])
            self.assertNotIn("`", cell.command)
            for model in re.findall(r"\$MODELS/(\S+)", cell.command):
                self.assertIn(model, cells.MODELS)

    def test_strategies_are_measured_on_16_prompts_or_more(self):
        for cell in cells.CELLS:
            words = shlex.split(cell.command)
            if "--data" in words:
                files = words[words.index("--data") + 1].split(",")
                self.assertGreaterEqual(len(files) * int(words[words.index("--limit") + 1]), 16, cell.name)

    def test_nothing_is_measured_on_prompts_that_were_tuned_on(self):
        def prompts(command):
            words = shlex.split(command)
            value = lambda flag: int(words[words.index(flag) + 1]) if flag in words else 0
            return value("--skip"), value("--skip") + value("--limit")
        for cell in cells.CELLS:
            if "--data" in cell.command:
                self.assertGreaterEqual(prompts(cell.command)[0], cells.N_TUNED, cell.name)
            if cell.first:
                self.assertLessEqual(prompts(cell.first)[1], cells.N_TUNED, cell.name)
                self.assertIn("--memory on", cell.first)
                self.assertIn("--memory on", cell.command)

    def test_first_runs_are_like_the_second(self):
        by_name = {cell.name: cell for cell in cells.CELLS}
        for name, word in (("cpu-short-avx2", "KNAP_ISA=avx2"), ("cpu-sampled-parts-code", "--temp 0.7"),
                           ("cpu-memory-document", "--max-prompt-tokens 7680")):
            self.assertIn(word, by_name[name].first)
            self.assertIn(word, by_name[name].command)

    def test_unevenness_is_the_farther_end(self):
        with contextlib.redirect_stderr(io.StringIO()):
            self.assertEqual(measure.turns_needed(2, float("inf")), 8)
        self.assertEqual(measure.turns_needed(2, 0.04), 4)
        self.assertEqual(measure.turns_needed(7, 0.031), 8)


@unittest.skipUnless(BUILD, "needs a build")
class RealTest(unittest.TestCase):
    def test_a_cell_of_the_real_program(self):
        with tempfile.TemporaryDirectory() as name:
            folder = Path(name)
            (folder / "build").symlink_to(BUILD)
            texts = ["The river rose in the night.", "Nobody was surprised by the water.", "A boat was tied to a tree."]
            prompts = [f"{n}: a prompt that was tuned on." for n in range(cells.N_TUNED)] + texts
            (folder / "gsm8k.jsonl").write_text("".join(json.dumps({"prompt": text}) + "\n" for text in prompts))
            small = "-n 40 -t 1 -c 256 --profile none --memory on"
            cell = cells.bench("tiny", cells.data("gsm8k.jsonl", 16),
                               f"--strategies 'knapspec,knapspec(memory=off)' {small}",
                               first=f"build/knap bench -m $MODEL {cells.data('gsm8k.jsonl', 5, is_tuned=True)} {small} -r 1")
            campaign = measure.Campaign(measure.parse(["--root", name, "--data", name, "--model", TINY_MODEL,
                                                       "--out", str(folder / "out")]))
            self.assertEqual(campaign.run([cell]), 0)
            file = bench_data.load(folder / "out/tiny.json")
            self.assertTrue(cell.wrote(file["cell"]))
            self.assertEqual(len(file["rows"]), 9)
            self.assertEqual((file["settings"]["skip"], file["settings"]["memory"]), (cells.N_TUNED, True))
            # The program reads a file with the record.
            subprocess.run([Path(BUILD) / "knap", "report", folder / "out/tiny.json", "-o", folder / "page.html"],
                           check=True, capture_output=True)


if __name__ == "__main__":
    os.environ.pop("MAKEFLAGS", None)
    unittest.main(argv=[sys.argv[0], *(["RealTest"] if BUILD else [])])
