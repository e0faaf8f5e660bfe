#!/usr/bin/env python3
"""Draws the pictures of the documentation into docs/pictures, with the programs of a build and the default model.

    docs/pictures.py --build build [NAME...]    all of them, or the named ones

Runs every program on this machine. Only the chart of speed comes from measured data (docs/tables.py --list); it is
left out while there are none. `make pictures` builds the programs first."""
import argparse
import os
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path

sys.dont_write_bytecode = True
import terminal  # noqa: E402

ROOT = Path(__file__).resolve().parent.parent
PICTURES = ROOT / "docs/pictures"
SPEED_DATA = "docs/results/data/cpu-context-*.json"
PROMPT = "examples/prompts/long.txt"
MAX_PNG_BYTES = 300_000


class NoData(RuntimeError):
    pass


class Painter:
    """Runs the programs of a build as a user does: `knap profile` saves a profile that later commands use."""

    def __init__(self, build):
        self.build = build
        self.folder = ROOT / build / "pictures"  # intermediate files
        self.folder.mkdir(parents=True, exist_ok=True)

    def run(self, *command):
        subprocess.run([str(word) for word in command], cwd=ROOT, check=True, stdout=subprocess.DEVNULL)

    def knap(self, *arguments):
        self.run(f"{self.build}/knap", *arguments)

    def draw_terminal(self, command, shown, n_columns, path, description, after=""):
        """Draws the output of `command` on a terminal from `after` on, below the line that a user types."""
        output = terminal.run_on_terminal(command, n_columns, folder=ROOT)
        output = output[output.index(after):].replace(str(Path.home()), "~")
        screen = terminal.Screen(f"\033[1m$ {shown}\033[0m\r\n{output}", n_columns)
        path.write_text(terminal.draw(screen, shown, description))

    def draw_cost(self):
        """knap profile: the costs of the parts of a pass."""
        self.knap("profile", "--seconds", "15", "-o", PICTURES / "cost.svg")

    def draw_demo(self):
        """make demo on a terminal, with accepted tokens in colour."""
        self.draw_terminal(["make", "demo", f"DEMO_PROMPTS={PROMPT}", f"JOBS={os.cpu_count()}"], "make demo", 122,
                           PICTURES / "demo.svg",
                           "A terminal with the output of make demo: the same text written by plain decoding and by "
                           "knapspec, drafted tokens in colour, and the speed of each.", after="knap: running")

    def draw_explain(self):
        """knap explain: the plan as a picture, and the report on a terminal."""
        self.draw_terminal([f"{self.build}/knap", "explain", "-f", PROMPT, "-o", str(PICTURES / "plan.svg")],
                           f"knap explain -f {PROMPT} -o plan.svg", 132, PICTURES / "explain.svg",
                           "A terminal with the output of knap explain: the chosen plan, the candidates with costs and "
                           "acceptance, where the time goes, and every decision.")

    def draw_report(self):
        """knap bench on the built-in prompts and knap report, as a browser shows it."""
        bench, page = self.folder / "bench.json", self.folder / "report.html"
        self.knap("bench", "-n", "48", "-r", "1", "--strategies", "lookup,knapspec,knapspec-paper", "--peer", "llama",
                  "-o", bench)
        self.knap("report", bench, "-o", page)
        screenshot(page, 1280, 1500, PICTURES / "report.png")

    def draw_speed(self):
        """Speed against context length, from docs/results/data."""
        files = sorted(ROOT.glob(SPEED_DATA))
        if not files:
            raise NoData(f"expected {SPEED_DATA}, found none (commands: docs/tables.py --list)")
        self.run(sys.executable, "docs/chart.py", *files, "-o", PICTURES / "speed.svg")


def screenshot(page, width, height, picture):
    browser = next((path for path in map(shutil.which, ("chromium", "chromium-browser", "google-chrome")) if path),
                   None)
    if browser is None:
        raise RuntimeError("expected chromium on the PATH, found none: deps/setup packages chromium")
    # Root and containers cannot have the sandbox. The page is our own.
    with tempfile.TemporaryDirectory() as profile:
        subprocess.run([browser, "--headless", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage",
                        "--no-first-run", "--hide-scrollbars", "--virtual-time-budget=10000",
                        f"--user-data-dir={profile}", f"--window-size={width},{height}", f"--screenshot={picture}",
                        f"file://{page}"], check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    if picture.stat().st_size > MAX_PNG_BYTES:
        raise RuntimeError(f"{picture}: expected at most {MAX_PNG_BYTES} bytes, found {picture.stat().st_size}")


# In drawing order: the others use the profile that `cost` saves.
NAMES = ("speed", "cost", "demo", "explain", "report")


def main():
    parser = argparse.ArgumentParser(description="Draws the pictures of the documentation")
    parser.add_argument("--build", default="build", help="folder of the build")
    parser.add_argument("names", nargs="*", metavar="NAME", help=f"of {', '.join(NAMES)}; default: all")
    options = parser.parse_args()
    unknown = set(options.names) - set(NAMES)
    if unknown:
        parser.error(f"expected names of {', '.join(NAMES)}; found {', '.join(sorted(unknown))}")
    PICTURES.mkdir(exist_ok=True)
    painter = Painter(options.build)
    for name in [name for name in NAMES if name in options.names or not options.names]:
        draw = getattr(painter, f"draw_{name}")
        print(f"pictures: {name}: {draw.__doc__}", flush=True)
        start = time.monotonic()
        try:
            draw()
        except subprocess.CalledProcessError as error:
            print(f"pictures: error: {error}\n{error.output or ''}", file=sys.stderr)
            return 1
        except NoData as error:
            if name in options.names:
                print(f"pictures: error: {error}", file=sys.stderr)
                return 1
            print(f"pictures: {name}: skipped: {error}", flush=True)
            continue
        except RuntimeError as error:
            print(f"pictures: error: {error}", file=sys.stderr)
            return 1
        print(f"pictures: {name}: done in {time.monotonic() - start:.0f} s", flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
