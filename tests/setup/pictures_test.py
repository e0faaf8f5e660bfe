#!/usr/bin/env python3
"""docs/chart.py and the pictures in docs/pictures."""
import json
import subprocess
import sys
import tempfile
import unittest
import xml.etree.ElementTree
from pathlib import Path

sys.dont_write_bytecode = True
ROOT = Path(__file__).resolve().parent.parent.parent
sys.path.insert(0, str(ROOT / "docs"))
import bench_data  # noqa: E402
import chart  # noqa: E402
import pictures  # noqa: E402

SVG = "{http://www.w3.org/2000/svg}"


def decode_file(depths):
    rows = [{"what": "decode", "depth": depth, "n_tokens": 10,
             "times_ms": {"knap": [50 + i, 50 + i, 51 + i], "llama, flash off": [100 + 2 * i], "llama, flash on": [200]}}
            for i, depth in enumerate(depths)]
    return {"format": 1, "host": {"cpu": "CPU", "isa": "avx2"}, "device": "CPU", "threads": 2,
            "models": [{"file": "m.gguf"}], "rows": rows, "name": "d.json"}


def bench_file():
    rows = [{"strategy": strategy, "depth": depth, "n_prompt": depth, "tokens_per_second": speed}
            for depth in (512, 4096)
            for strategy, speed in (("autoregressive", 200), ("knapspec", 400), ("llama", 100))]
    return {"format": 1, "host": {"cpu": "CPU", "isa": "avx2"}, "device": "CPU", "model": {"file": "m.gguf"},
            "settings": {"threads": 2}, "rows": rows, "name": "b.json"}


class ChartTest(unittest.TestCase):
    def test_series_of_decode_bench_have_the_better_peer(self):
        series = chart.series_of([decode_file([16, 8000])])
        self.assertEqual([point.speed for point in series["knap"]], [200, 10000 / 51])
        self.assertEqual([point.speed for point in series["libllama"]], [100, 10000 / 102])

    def test_series_of_knap_bench_include_the_strategy(self):
        series = chart.series_of([bench_file()])
        self.assertEqual({name: round(points[0].speed) for name, points in series.items()},
                         {"knap": 200, "knapspec": 400, "libllama": 100})

    def test_files_for_each_length_are_points_with_intervals(self):
        def file_of(length, speeds):
            rows = [{"strategy": strategy, "depth": None, "n_prompt": length - 1, "tokens_per_second": factor * speed}
                    for speed in speeds for strategy, factor in (("autoregressive", 2), ("llama", 1))]
            return {**bench_file(), "rows": rows, "settings": {"threads": 2, "max_prompt_tokens": length}}
        series = chart.series_of([file_of(4096, [40, 40]), file_of(512, [50, 200])])
        self.assertEqual([point.length for point in series["knap"]], [512, 4096])
        first, second = series["libllama"]
        self.assertAlmostEqual(first.speed, 100)
        self.assertAlmostEqual(first.low * first.high, first.speed**2)
        self.assertGreater(first.high, 200)
        self.assertAlmostEqual(second.high, 40)

    def test_picture_has_a_description_in_words(self):
        for theme in chart.THEMES:
            picture = chart.draw([bench_file()], theme)
            root = xml.etree.ElementTree.fromstring(picture)
            self.assertEqual(root.find(f"{SVG}title").text,
                             "knap, speculative: 4.0 times the speed of libllama")
            self.assertIn("libllama: 100 tokens per second after 512 tokens", root.find(f"{SVG}desc").text)
            self.assertEqual(root.get("role"), "img")
            self.assertNotRegex(picture, "<script|@import|url\\(|href")
            self.assertLess(len(picture), 20_000)

    def test_points_lie_inside_the_picture(self):
        root = xml.etree.ElementTree.fromstring(chart.draw([decode_file([16, 512, 131072])], "dark"))
        circles = list(root.iter(f"{SVG}circle"))
        self.assertEqual(len(circles), 6)
        for circle in circles:
            self.assertTrue(chart.LEFT <= float(circle.get("cx")) <= chart.WIDTH - chart.RIGHT)
            self.assertTrue(chart.TOP <= float(circle.get("cy")) <= chart.HEIGHT - chart.BOTTOM)

    def test_too_few_data_are_refused(self):
        with self.assertRaisesRegex(bench_data.DataError, "at two lengths or more"):
            chart.series_of([decode_file([16])])
        with self.assertRaisesRegex(bench_data.DataError, "found both"):
            chart.series_of([decode_file([16, 32]), bench_file()])

    def test_both_files_are_written(self):
        with tempfile.TemporaryDirectory() as folder:
            (Path(folder) / "d.json").write_text(json.dumps(decode_file([16, 512])))
            subprocess.run([sys.executable, ROOT / "docs/chart.py", f"{folder}/d.json", "-o", f"{folder}/s.svg"],
                           check=True)
            self.assertEqual({path.name for path in Path(folder).glob("*.svg")}, {"s-light.svg", "s-dark.svg"})


class CommittedPicturesTest(unittest.TestCase):
    def test_they_are_valid_small_and_load_nothing(self):
        paths = sorted((ROOT / "docs/pictures").iterdir())
        self.assertTrue(paths)
        for path in paths:
            self.assertLess(path.stat().st_size, 300_000, path.name)
            if path.suffix == ".svg":
                text = path.read_text()
                xml.etree.ElementTree.fromstring(text)
                self.assertNotRegex(text, r"@import|url\(|href=.https?:", path.name)

    def test_chart_matches_its_data(self):
        files = [bench_data.load(path) for path in sorted(ROOT.glob(pictures.SPEED_DATA))]
        for theme in chart.THEMES:
            path = ROOT / f"docs/pictures/speed-{theme}.svg"
            self.assertEqual(path.exists(), bool(files), f"{path}: expected with data only (docs/pictures.py speed)")
            if files:
                self.assertEqual(path.read_text(), chart.draw(files, theme), "docs/pictures.py speed redraws it")


if __name__ == "__main__":
    unittest.main()
