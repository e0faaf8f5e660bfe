"""Tests of -hf with a hub on this machine, which behaves and misbehaves as hubs and networks do.

    hub_test.py KNAP MODEL [unittest's arguments]"""
import json
import os
import pty
import resource
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time
import unittest
from pathlib import Path

sys.dont_write_bytecode = True
sys.path.insert(0, str(Path(__file__).resolve().parent))
from fake_hub import COMMIT, Fault, File, Hub, cut, stall, status  # noqa: E402

KNAP = sys.argv.pop(1)
MODEL = Path(sys.argv.pop(1)).read_bytes()
TOKEN = "hf_abcdefghijklmnopqrstuvwxyz0123456789"
REPO = "team/tiny-GGUF"
HALF = len(MODEL) // 2


class HubTest(unittest.TestCase):
    def setUp(self):
        self.folder = Path(tempfile.mkdtemp())
        self.addCleanup(shutil.rmtree, self.folder)
        self.hub = self.start({"tiny-Q4_K_M.gguf": File(MODEL)})

    def start(self, files, **settings):
        hub = Hub({REPO: files}, **settings)
        self.addCleanup(hub.stop)
        return hub

    def environment(self, **more):
        kept = {name: value for name, value in os.environ.items()
                if not name.startswith(("HF_", "MODEL_", "SSL_")) and not name.lower().endswith("_proxy")}
        return {**kept, "KNAP_CACHE": str(self.folder), "KNAP_CACHE_DIR": str(self.folder), "HF_ENDPOINT": self.hub.url, **more}

    def command(self, *flags, model=REPO):
        return [KNAP, "info", "--json", "-hf", model, *flags]

    def run_knap(self, *flags, model=REPO, env=None, **how):
        return subprocess.run(self.command(*flags, model=model), env=env or self.environment(), capture_output=True, text=True,
                              timeout=60, **how)

    def path(self, name="tiny-Q4_K_M.gguf"):
        return self.folder / "hub" / REPO / name

    def partial(self):
        return next(self.path().parent.glob("*.partial"), None)

    def assert_done(self, result, name="tiny-Q4_K_M.gguf"):
        self.assertEqual(result.returncode, 0, result.stderr)
        self.assertEqual(json.loads(result.stdout)["path"], str(self.path(name)))
        self.assertIsNone(self.partial())

    def assert_error(self, result, *texts, code=1):
        self.assertEqual((result.returncode, result.stdout), (code, ""), result.stderr)
        self.assertRegex(result.stderr, r"\Aknap: error: [^\n]*\n\Z")
        for text in texts:
            self.assertIn(text, result.stderr)

    def assert_nothing_left(self):
        """No byte that counts as a model or as a part of one."""
        self.assertEqual([path for path in self.folder.rglob("*") if path.is_file() and path.stat().st_size > 0], [])
        self.assertIsNone(self.partial())

    def outside(self):
        """Files that knap wrote where it must not."""
        return [path for path in self.folder.rglob("*") if path.is_file() and self.folder / "hub" / REPO not in path.parents]


class GoodHub(HubTest):
    def test_a_model_is_fetched_once(self):
        first = self.run_knap()
        self.assert_done(first)
        self.assertEqual(first.stderr, "")
        self.assertEqual(self.path().read_bytes(), MODEL)
        self.assertEqual(len(self.hub.downloads()), 1)
        self.assert_done(self.run_knap())
        self.assertEqual(len(self.hub.downloads()), 1)

    def test_every_spelling_finds_its_file(self):
        files = {"BF16.gguf": File(MODEL), "mmproj-Q4_K_M.gguf": File(b"no"), "sub/tiny-Q8_0.gguf": File(MODEL),
                 "tiny-F16.gguf": File(MODEL)}
        self.hub.repositories[REPO] = files
        for flags, name in ((["-hf", REPO], "sub/tiny-Q8_0.gguf"), (["-hfr", REPO + ":f16"], "tiny-F16.gguf"),
                            (["--hf-repo", REPO + ":bf16"], "BF16.gguf"), ([f"--hf-repo={REPO}:tiny-F16.gguf"], "tiny-F16.gguf"),
                            (["-hf", REPO + ":Q8_0", "-hff", "tiny-F16.gguf"], "tiny-F16.gguf"),
                            (["--hf-file", "sub/tiny-Q8_0.gguf", "-hf", REPO], "sub/tiny-Q8_0.gguf")):
            with self.subTest(flags=flags):
                result = subprocess.run([KNAP, "info", "--json", *flags], env=self.environment(), capture_output=True, text=True)
                self.assert_done(result, name)

    def test_other_commands_take_the_flag(self):
        for command in (["run", "-p", "a", "-n", "2"], ["check", "--limit", "1", "-n", "2", "--json"]):
            result = subprocess.run([KNAP, *command, "-t", "1", "-hf", REPO], env=self.environment(), capture_output=True)
            self.assertEqual(result.returncode, 0, result.stderr)
        self.assertEqual(len(self.hub.downloads()), 1)

    def test_wrong_usage_is_reported_before_anything_is_fetched(self):
        result = subprocess.run([KNAP, "run", "-hf", REPO], env=self.environment(), capture_output=True, text=True)
        self.assert_error(result, "no prompt", code=2)
        self.assertEqual(self.hub.requests, [])

    def test_all_parts_of_a_split_model_are_fetched(self):
        parts = {f"Q4_K_M/m-0000{n}-of-00003.gguf": File(MODEL + bytes([n])) for n in (3, 1, 2)}
        self.hub.repositories[REPO] = parts
        self.run_knap()
        for name, file in parts.items():
            self.assertEqual(self.path(name).read_bytes(), file.data)
        self.run_knap(model=REPO + ":Q4_K_M")
        self.assertEqual(len(self.hub.downloads()), 3)

    def test_a_split_model_with_a_missing_part_is_refused(self):
        self.hub.repositories[REPO] = {f"m-0000{n}-of-00003.gguf": File(MODEL) for n in (1, 3)}
        self.assert_error(self.run_knap(), "expected all 3 parts", "found no m-00002-of-00003.gguf")

    def test_small_files_have_checksums_of_git(self):
        self.hub.repositories[REPO] = {"tiny-Q4_K_M.gguf": File(MODEL, is_large=False)}
        self.assert_done(self.run_knap())
        self.hub.repositories[REPO] = {"tiny-Q4_K_M.gguf": File(MODEL + b"x", is_large=False, sent=MODEL + b"y")}
        self.assert_error(self.run_knap(), "expected git-sha1:")

    def test_long_lists_of_files_have_pages(self):
        self.hub.repositories[REPO] = {f"other-{i}.gguf": File(b"GGUF") for i in range(5)} | {"tiny-Q8_0.gguf": File(MODEL)}
        self.hub.page_size = 2
        self.assert_done(self.run_knap(), "tiny-Q8_0.gguf")

    def test_a_new_version_replaces_the_old_one(self):
        self.assert_done(self.run_knap())
        changed = MODEL[:-4] + b"new!"
        self.hub.repositories[REPO] = {"tiny-Q4_K_M.gguf": File(changed)}
        self.assert_done(self.run_knap())
        self.assertEqual(self.path().read_bytes(), changed)

    def test_a_damaged_cache_is_repaired(self):
        self.assert_done(self.run_knap())
        self.path().write_bytes(MODEL[:-4] + b"bad!")
        self.assert_done(self.run_knap())
        self.assertEqual(self.path().read_bytes(), MODEL)
        self.assertEqual(len(self.hub.downloads()), 2)

    def test_a_copied_cache_is_checked_not_fetched(self):
        self.assert_done(self.run_knap())
        os.utime(self.path(), (1, 1))
        self.assert_done(self.run_knap())
        self.assertEqual(len(self.hub.downloads()), 1)

    def test_the_bar_is_for_terminals(self):
        self.hub.faults = [Fault("/blob/", stall(MODEL, HALF, threading.Event()))]
        master, slave = pty.openpty()
        process = subprocess.Popen(self.command(), env=self.environment(HF_HUB_DOWNLOAD_TIMEOUT="2"), stdout=subprocess.DEVNULL,
                                   stderr=slave)
        os.close(slave)
        shown = b""
        while True:
            try:
                shown += os.read(master, 4096) or b""
            except OSError:
                break
        os.close(master)
        self.assertEqual(process.wait(60), 0)
        self.assertRegex(shown.decode(), r"\rfetch \[=+ +\] \d+%  [\d.]+ .B")
        self.assertIn("trying again: ", shown.decode())


class Tokens(HubTest):
    def servers_with_token(self):
        return {request.server for request in self.hub.requests if request.token}

    def test_the_token_stays_with_the_hub(self):
        self.assert_done(self.run_knap(env=self.environment(HF_TOKEN=TOKEN)))
        self.assertEqual(self.servers_with_token(), {"hub"})
        self.assertTrue(all(request.token == TOKEN for request in self.hub.requests if request.server == "hub"))

    def test_the_token_stays_with_the_hub_when_names_differ_and_ports_do_not(self):
        self.hub.storage_url = self.hub.url.replace("127.0.0.1", "localhost")
        self.assert_done(self.run_knap("-hft", TOKEN))
        self.assertEqual([request.token for request in self.hub.downloads()], [""])

    def test_without_a_token_none_is_sent(self):
        self.assert_done(self.run_knap())
        self.assertEqual(self.servers_with_token(), set())

    def test_the_flag_goes_before_the_variable(self):
        self.run_knap("--hf-token", TOKEN, env=self.environment(HF_TOKEN="hf_other"))
        self.assertIn(TOKEN, {request.token for request in self.hub.requests})
        self.assertNotIn("hf_other", {request.token for request in self.hub.requests})

    def test_unencrypted_hubs_elsewhere_get_no_token(self):
        self.hub = self.start({"tiny-Q4_K_M.gguf": File(MODEL)}, address="127.0.0.2")
        result = self.run_knap("-hft", TOKEN)
        self.assert_done(result)
        self.assertIn("warning: the token is not sent to http://127.0.0.2", result.stderr)
        self.assertEqual(self.servers_with_token(), set())

    def test_a_token_cannot_add_headers(self):
        self.assert_error(self.run_knap("-hft", "hf_a\r\nX-Evil: 1"), "--hf-token: expected a token")
        self.assertEqual(self.hub.requests, [])


class Refusals(HubTest):
    def refused(self, code, part="/refs", headers=(), env=None):
        self.hub.faults = [Fault(part, status(code, headers), count=9)]
        return self.run_knap(env=env)

    def test_a_missing_repository(self):
        self.assert_error(self.run_knap(model="team/other"), "team/other: expected a repository", '"Repository not found"')

    def test_a_missing_list_of_files(self):
        self.assert_error(self.refused(404, "/tree/"), f"{REPO}: expected a repository with models at {self.hub.url}/api/models/{REPO}/tree/",
                          "found none")
        self.assert_nothing_left()

    def test_a_listed_file_that_is_missing(self):
        for part in ("/resolve/", "/blob/"):
            self.hub.requests.clear()
            result = self.refused(404, part, [("X-Error-Message", "Entry not found")])
            self.assert_error(result, f"{REPO}: expected the file that it lists at {self.hub.url}/{REPO}/resolve/{COMMIT}/tiny-Q4_K_M.gguf, "
                                      'found none ("Entry not found")')
            self.assertEqual(sum(part in request.path for request in self.hub.requests), 1, "asked once")
            self.assert_nothing_left()

    def test_a_missing_part_of_a_split_model(self):
        self.hub.repositories[REPO] = {f"m-0000{n}-of-00002.gguf": File(MODEL) for n in (1, 2)}
        self.hub.faults = [Fault("m-00002-of", status(404))]
        self.assert_error(self.run_knap(), "the file that it lists", "m-00002-of-00002.gguf, found none")
        self.assertIsNone(self.partial())
        self.assert_done(self.run_knap(), "m-00001-of-00002.gguf")

    def test_a_missing_quant_lists_what_there_is(self):
        self.assert_error(self.run_knap(model=REPO + ":Q9_X"), "expected a GGUF file for :Q9_X, found tiny-Q4_K_M.gguf")
        self.assert_error(self.run_knap("-hff", "x.gguf"), "expected a GGUF file named x.gguf, found tiny-Q4_K_M.gguf")

    def test_a_repository_without_models(self):
        self.hub.repositories[REPO] = {"model.safetensors": File(b"x")}
        self.assert_error(self.run_knap(), "expected a GGUF file, found none")

    def test_gated_and_private_repositories(self):
        for code in (401, 403):
            for part in ("/refs", "/resolve/"):
                result = self.refused(code, part, [("X-Error-Message", "Access is restricted")])
                self.assert_error(result, f"status {code}", "Access is restricted", "$HF_TOKEN or --hf-token")
                result = self.refused(code, part, env=self.environment(HF_TOKEN=TOKEN))
                self.assert_error(result, f"conditions accepted at {self.hub.url}/{REPO}")
                self.assertNotIn(TOKEN, result.stderr)

    def test_a_busy_hub_is_asked_again(self):
        self.hub.faults = [Fault("/refs", status(429, [("Retry-After", "1")])), Fault("/tree/", status(503)),
                           Fault("/resolve/", status(500))]
        begin = time.monotonic()
        self.assert_done(self.run_knap())
        self.assertGreater(time.monotonic() - begin, 1.9)

    def test_a_hub_that_asks_for_too_much_patience(self):
        self.assert_error(self.refused(429, headers=[("Retry-After", "3600")]), "status 429", "with a token")

    def test_a_hub_that_stays_broken(self):
        self.assert_error(self.refused(500), "/refs: expected a file, found status 500")
        self.assertEqual(len(self.hub.requests), 5)

    def test_answers_that_are_no_lists(self):
        for part, body in (("/refs", b"<html>"), ("/refs", b"{}"), ("/refs", b'{"branches":[{"name":1}]}'), ("/tree/", b"{"),
                           ("/tree/", b"{}")):
            self.hub.faults = [Fault(part, status(200, body=body))]
            self.assert_error(self.run_knap(), f"{self.hub.url}/api/models/{REPO}", "expected a ")

    def test_endless_answers(self):
        self.hub.faults = [Fault("/tree/", status(200, body=b" " * (17 << 20)))]
        self.assert_error(self.run_knap(), "expected at most 16777216 bytes")
        self.hub.page_size = 0
        self.assert_error(self.run_knap(), "pages, found more")

    def test_redirects_without_end(self):
        self.hub.faults = [Fault("/refs", lambda handler: handler.redirect(handler.path), count=99)]
        self.assert_error(self.run_knap(), "redirects")

    def test_redirects_to_files_of_this_machine(self):
        self.hub.faults = [Fault("/resolve/", lambda handler: handler.redirect("file:///etc/passwd"))]
        self.assert_error(self.run_knap(), "file")

    def test_nobody_at_the_endpoint(self):
        env = self.environment(HF_ENDPOINT="http://127.0.0.1:1")
        self.assert_error(self.run_knap(env=env), "http://127.0.0.1:1/api/models/" + REPO + "/refs: ")

    def test_endpoints_that_are_none(self):
        for endpoint in ("ftp://host", "https://", "https://user@host", "https://host?x"):
            self.assert_error(self.run_knap(env=self.environment(HF_ENDPOINT=endpoint)), "expected https://HOST")
        env = self.environment(HF_ENDPOINT="ftp://host", MODEL_ENDPOINT=self.hub.url + "/")
        self.assert_done(self.run_knap(env=env))

    def test_wrong_usage(self):
        for model in ("tiny", "a/b/c", "../x", "a/..", "a/b:", "/b", "a/-b", "a b/c", ""):
            self.assert_error(self.run_knap(model=model), "--hf-repo: expected USER/REPO", code=2)
        self.assert_error(self.run_knap("-m", "x.gguf"), "either --model or --hf-repo", code=2)
        result = subprocess.run([KNAP, "info", "-hff", "x.gguf"], env=self.environment(), capture_output=True, text=True)
        self.assert_error(result, "--hf-file: expected --hf-repo", code=2)
        self.assert_error(self.run_knap(env=self.environment(HF_HUB_DOWNLOAD_TIMEOUT="x")), "$HF_HUB_DOWNLOAD_TIMEOUT", code=2)


class Transfers(HubTest):
    def test_a_cut_connection_goes_on_where_it_stopped(self):
        self.hub.faults = [Fault("/blob/", cut(MODEL, HALF)), Fault("/blob/", cut(MODEL, 1000))]
        self.assert_done(self.run_knap())
        self.assertEqual([request.range for request in self.hub.downloads()],
                         [None, f"bytes={HALF}-", f"bytes={HALF + 1000}-"])
        self.assertEqual(self.path().read_bytes(), MODEL)

    def test_many_cuts_are_fine_while_bytes_come(self):
        self.hub.faults = [Fault("/blob/", cut(MODEL, len(MODEL) // 9), count=8)]
        self.assert_done(self.run_knap())

    def test_a_connection_that_brings_nothing_ends_the_run_and_the_next_one_goes_on(self):
        self.hub.faults = [Fault("/blob/", cut(MODEL, HALF)), Fault("/blob/", cut(MODEL, 0), count=4)]
        self.assert_error(self.run_knap(), f"{self.hub.url}/{REPO}/resolve/{COMMIT}/tiny-Q4_K_M.gguf: ")
        self.assertEqual(self.partial().read_bytes(), MODEL[:HALF])
        self.assertFalse(self.path().exists())
        self.assert_done(self.run_knap())
        self.assertEqual(self.hub.downloads()[-1].range, f"bytes={HALF}-")

    def test_a_server_without_ranges_starts_again(self):
        whole = lambda handler: handler.send_data(MODEL, knows_ranges=False)  # noqa: E731
        self.hub.faults = [Fault("/blob/", cut(MODEL, HALF)), Fault("/blob/", whole)]
        self.assert_done(self.run_knap())
        self.assertEqual(self.path().read_bytes(), MODEL)

    def test_a_server_without_ranges_that_is_always_cut_is_given_up(self):
        self.hub.faults = [Fault("/blob/", cut(MODEL, HALF, knows_ranges=False), count=99)]
        self.assert_error(self.run_knap(), "resolve")
        self.assertLess(len(self.hub.downloads()), 9)

    def test_a_server_that_refuses_the_range_starts_again(self):
        self.hub.faults = [Fault("/blob/", cut(MODEL, HALF)), Fault("/blob/", status(416))]
        self.assert_done(self.run_knap())

    def test_a_wrong_range_is_refused(self):
        def other(handler):
            handler.send_response(206)
            handler.send_header("Content-Range", f"bytes 0-{len(MODEL) - 1}/{len(MODEL)}")
            handler.send_header("Content-Length", str(len(MODEL)))
            handler.end_headers()
            handler.wfile.write(MODEL)
        self.hub.faults = [Fault("/blob/", cut(MODEL, HALF)), Fault("/blob/", other)]
        self.assert_error(self.run_knap(), f"expected the bytes from {HALF} on")

    def test_a_stalled_connection_counts_as_cut(self):
        event = threading.Event()
        self.addCleanup(event.set)
        self.hub.faults = [Fault("/blob/", stall(MODEL, HALF, event)), Fault("/refs", stall(b"{}", 1, event))]
        self.assert_done(self.run_knap(env=self.environment(HF_HUB_DOWNLOAD_TIMEOUT="1")))

    def test_a_wrong_size_is_refused_before_a_byte_is_kept(self):
        for sent in (MODEL + b"more", MODEL[:-1]):
            self.hub.repositories[REPO]["tiny-Q4_K_M.gguf"].sent = sent
            self.assert_error(self.run_knap(), f"expected {len(MODEL)} bytes, found {len(sent)}")
            self.assertFalse(self.path().exists())

    def test_an_endless_body_is_cut(self):
        def endless(handler):
            handler.send_response(200)
            handler.send_header("Transfer-Encoding", "chunked")
            handler.end_headers()
            handler.wfile.write(b"%x\r\n%s\r\n" % (len(MODEL), MODEL))
            while True:
                handler.wfile.write(b"5\r\nendle\r\n")
        self.hub.faults = [Fault("/blob/", endless)]
        self.assert_error(self.run_knap(), "found more")
        self.assertIsNone(self.partial())

    def test_a_short_body_without_length_is_asked_for_the_rest(self):
        def short(handler):
            handler.send_response(200)
            handler.send_header("Transfer-Encoding", "chunked")
            handler.end_headers()
            handler.wfile.write(b"%x\r\n%s\r\n0\r\n\r\n" % (HALF, MODEL[:HALF]))
        self.hub.faults = [Fault("/blob/", short)]
        self.assert_done(self.run_knap())
        self.assertEqual(self.hub.downloads()[-1].range, f"bytes={HALF}-")

    def test_corrupted_contents_never_appear(self):
        damaged = MODEL[:HALF] + b"\0\1\2\3" + MODEL[HALF + 4:]
        self.hub.repositories[REPO]["tiny-Q4_K_M.gguf"].sent = damaged
        self.assert_error(self.run_knap(), "expected sha256:", "found sha256:", "it was deleted")
        self.assertFalse(self.path().exists())
        self.assertIsNone(self.partial())

    def test_bad_bytes_of_an_earlier_run_are_fetched_again(self):
        self.hub.faults = [Fault("/blob/", cut(MODEL, HALF)), Fault("/blob/", cut(MODEL, 0), count=4)]
        self.run_knap()
        self.partial().write_bytes(b"GGUF" + bytes(HALF - 4))
        self.assert_done(self.run_knap())
        self.assertEqual([request.range for request in self.hub.downloads()[-2:]], [f"bytes={HALF}-", None])

    def test_a_page_in_place_of_a_model_is_refused_at_once(self):
        page = b"<!DOCTYPE html>" + bytes(len(MODEL))
        self.hub.repositories[REPO] = {"tiny-Q4_K_M.gguf": File(page)}
        self.assert_error(self.run_knap(), "expected a GGUF file, found '<!DOCTYPE html>")
        self.assertIsNone(self.partial())

    def test_parts_of_an_older_version_are_removed(self):
        self.hub.faults = [Fault("/blob/", cut(MODEL, HALF)), Fault("/blob/", cut(MODEL, 0), count=4)]
        self.run_knap()
        old = self.partial()
        self.hub.repositories[REPO] = {"tiny-Q4_K_M.gguf": File(MODEL + b"x")}
        self.assert_done(self.run_knap())
        self.assertFalse(old.exists())
        self.assertIsNone(self.hub.downloads()[-1].range)

    def test_a_full_disk_keeps_what_came(self):
        def limit():
            resource.setrlimit(resource.RLIMIT_FSIZE, (HALF, HALF))
            signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
        result = self.run_knap(preexec_fn=limit, restore_signals=False)
        self.assert_error(result, ".partial: cannot write: ")
        self.assertEqual(self.partial().read_bytes(), MODEL[:HALF])
        self.assert_done(self.run_knap())
        self.assertEqual(self.hub.downloads()[-1].range, f"bytes={HALF}-")

    def test_a_disk_without_room_is_noticed_first(self):
        entry = File(MODEL).entry("huge-Q4_K_M.gguf") | {"size": 1 << 47}
        self.hub.extra_entries = [entry]
        self.assert_error(self.run_knap(), f"expected {1 << 47} free bytes in ")
        self.assertEqual(self.hub.downloads(), [])


class Names(HubTest):
    def test_no_name_leads_out_of_the_folder(self):
        names = ["../out-Q4_K_M.gguf", "/tmp/out-Q4_K_M.gguf", "a/../../out-Q4_K_M.gguf", "a\\..\\out-Q4_K_M.gguf", "a//Q4_K_M.gguf",
                 ".hidden-Q4_K_M.gguf", "a/./Q4_K_M.gguf", "new\nline-Q4_K_M.gguf", "x" * 300 + "-Q4_K_M.gguf",
                 "a/" * 20 + "Q4_K_M.gguf", "..", ""]
        self.hub.extra_entries = [File(MODEL).entry(name) for name in names]
        self.hub.repositories[REPO] = {"last-Q8_0.gguf": File(MODEL)}
        self.assert_done(self.run_knap(), "last-Q8_0.gguf")
        self.assert_error(self.run_knap("-hff", "../out-Q4_K_M.gguf"), "found last-Q8_0.gguf")
        self.assertEqual(self.outside(), [])

    def test_entries_without_size_or_checksum_are_passed_over(self):
        good = File(MODEL).entry("a-Q4_K_M.gguf")
        self.hub.extra_entries = [1, None, [], {}, good | {"size": -1}, good | {"size": "1"}, good | {"size": 1 << 60}, good | {"path": 3},
                                  good | {"lfs": {"oid": "../../x"}}, good | {"lfs": {"oid": "A" * 64}}, good | {"type": "directory"}]
        self.hub.repositories[REPO] = {"last-Q8_0.gguf": File(MODEL)}
        self.assert_done(self.run_knap(), "last-Q8_0.gguf")

    def test_commits_that_are_none(self):
        body = json.dumps({"branches": [{"name": "main", "targetCommit": "../../../etc"}]}).encode()
        self.hub.faults = [Fault("/refs", status(200, body=body))]
        self.assert_error(self.run_knap(), "expected a branch with a commit")

    def test_names_are_escaped(self):
        self.hub.repositories[REPO] = {"a b%2F#?é-Q4_K_M.gguf": File(MODEL)}
        self.assert_done(self.run_knap(), "a b%2F#?é-Q4_K_M.gguf")


class WithoutHub(HubTest):
    def test_offline_asks_nobody(self):
        self.assert_done(self.run_knap())
        n_requests = len(self.hub.requests)
        self.assert_done(self.run_knap("--offline"))
        self.assert_done(self.run_knap(env=self.environment(HF_HUB_OFFLINE="1")))
        self.assertEqual(len(self.hub.requests), n_requests)

    def test_offline_without_the_model(self):
        self.assert_error(self.run_knap("--offline"), f"expected a model in {self.folder}/hub/{REPO}, found none")
        self.assertEqual(self.hub.requests, [])
        self.assert_done(self.run_knap())
        self.assert_error(self.run_knap("--offline", model=REPO + ":Q8_0"), "for :Q8_0, found tiny-Q4_K_M.gguf")

    def test_offline_takes_no_half_of_a_model(self):
        self.hub.faults = [Fault("/blob/", cut(MODEL, HALF)), Fault("/blob/", cut(MODEL, 0), count=4)]
        self.run_knap()
        self.assert_error(self.run_knap("--offline"), "found none")

    def test_a_hub_that_is_down_does_not_stop_a_model_that_is_there(self):
        self.assert_done(self.run_knap())
        begin = time.monotonic()
        result = self.run_knap(env=self.environment(HF_ENDPOINT="http://127.0.0.1:1"))
        self.assert_done(result)
        self.assertRegex(result.stderr, r"\Aknap: warning: http://127.0.0.1:1/[^\n]*; using the model in [^\n]*\n\Z")
        self.assertLess(time.monotonic() - begin, 5)

    def cut_after(self, n_bytes, part="/blob/"):
        """The connection of a new version's file is cut there, and brings nothing after that."""
        self.hub.faults = [Fault(part, cut(MODEL, n_bytes)), Fault(part, cut(MODEL, 0), count=4)]

    def test_a_model_stays_there_until_its_new_version_is(self):
        self.assert_done(self.run_knap())
        changed = MODEL[:-4] + b"new!"
        self.hub.repositories[REPO] = {"tiny-Q4_K_M.gguf": File(changed)}
        self.cut_after(HALF)
        self.assert_error(self.run_knap(), "/resolve/")
        for result in (self.run_knap("--offline"), self.run_knap(env=self.environment(HF_ENDPOINT="http://127.0.0.1:1"))):
            self.assertEqual(result.returncode, 0, result.stderr)
            self.assertEqual(json.loads(result.stdout)["path"], str(self.path()))
        self.assertEqual(self.path().read_bytes(), MODEL)
        self.assert_done(self.run_knap())
        self.assertEqual(self.path().read_bytes(), changed)
        self.assertEqual(self.hub.downloads()[-1].range, f"bytes={HALF}-")

    def test_a_model_of_which_a_part_is_new_is_not_there(self):
        names = [f"m-0000{n}-of-00002.gguf" for n in (1, 2)]
        self.hub.repositories[REPO] = {name: File(MODEL) for name in names}
        self.run_knap()
        self.run_knap("--offline")
        changed = MODEL[:-4] + b"new!"
        self.hub.repositories[REPO] = {name: File(changed) for name in names}
        self.cut_after(HALF, names[1])
        self.assert_error(self.run_knap(), names[1])
        self.assertEqual([self.path(name).read_bytes() for name in names], [changed, MODEL])
        self.assert_error(self.run_knap("--offline"), "found none")

    def test_a_damaged_record_is_no_reason_to_fail(self):
        self.assert_done(self.run_knap())
        for text in ("", "{", "[]", '{"files":3}', '{"files":[{"path":"../../x"}]}', '{"format":"1","files":[]}'):
            Path(str(self.path()) + ".json").write_text(text)
            self.assert_done(self.run_knap())
        self.assertEqual(len(self.hub.downloads()), 1)

    def test_a_record_of_another_format_does_not_count(self):
        self.assert_done(self.run_knap())
        record = Path(str(self.path()) + ".json")
        written = json.loads(record.read_text())
        self.assertEqual(written.pop("format"), 1)
        record.write_text(json.dumps(written))  # as it was before it had a number
        self.assert_done(self.run_knap("--offline"))
        record.write_text(json.dumps({"format": 2, **written}))
        self.assert_error(self.run_knap("--offline"), "found none")
        self.assert_done(self.run_knap())
        self.assertEqual(json.loads(record.read_text())["format"], 1)
        self.assertEqual(len(self.hub.downloads()), 1)


class Processes(HubTest):
    def start_knap(self):
        return subprocess.Popen(self.command(), env=self.environment(), stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)

    def wait_for_bytes(self, n_bytes):
        deadline = time.monotonic() + 30
        while not self.partial() or self.partial().stat().st_size < n_bytes:
            self.assertLess(time.monotonic(), deadline, "nothing was fetched")
            time.sleep(0.02)

    def test_signals_keep_what_came(self):
        event = threading.Event()
        self.addCleanup(event.set)
        for number, code, text in ((signal.SIGINT, 130, "knap: interrupted"), (signal.SIGTERM, 130, "knap: interrupted"),
                                   (signal.SIGKILL, -9, "")):
            with self.subTest(number=number):
                self.hub.faults = [Fault("/blob/", stall(MODEL, HALF, event))]
                process = self.start_knap()
                self.wait_for_bytes(HALF)
                begin = time.monotonic()
                process.send_signal(number)
                output, error = process.communicate(timeout=30)
                self.assertLess(time.monotonic() - begin, 2)
                self.assertEqual((process.returncode, output), (code, ""))
                self.assertTrue(error.startswith(text) and error.count("\n") <= 1, error)
                self.assertFalse(self.path().exists())
                self.assert_done(self.run_knap())
                self.assertEqual(self.hub.downloads()[-1].range, f"bytes={HALF}-")
                shutil.rmtree(self.folder / "hub")

    def test_a_signal_while_waiting_to_try_again(self):
        self.hub.faults = [Fault("/refs", status(429, [("Retry-After", "60")]))]
        process = self.start_knap()
        while not self.hub.requests:
            time.sleep(0.02)
        time.sleep(0.2)
        process.send_signal(signal.SIGINT)
        process.communicate(timeout=5)
        self.assertEqual(process.returncode, 130)

    def test_processes_at_once_fetch_one_copy(self):
        event = threading.Event()
        self.hub.faults = [Fault("/blob/", stall(MODEL, HALF, event))]
        processes = [self.start_knap() for _ in range(3)]
        self.wait_for_bytes(HALF)
        time.sleep(0.5)  # the others wait for the lock
        self.assertEqual(len(self.hub.downloads()), 1)
        event.set()
        for process in processes:
            output, error = process.communicate(timeout=60)
            self.assertEqual((process.returncode, error), (0, ""))
            self.assertEqual(json.loads(output)["path"], str(self.path()))
        self.assertEqual([request.range for request in self.hub.downloads()], [None, f"bytes={HALF}-"])
        self.assertEqual(self.path().read_bytes(), MODEL)

    def test_a_dead_process_leaves_no_lock(self):
        event = threading.Event()
        self.addCleanup(event.set)
        self.hub.faults = [Fault("/blob/", stall(MODEL, HALF, event))]
        process = self.start_knap()
        self.wait_for_bytes(HALF)
        process.kill()
        process.communicate()
        self.assert_done(self.run_knap())

    def test_a_folder_that_cannot_be_written(self):
        (self.folder / "hub").write_text("a file")
        self.assert_error(self.run_knap(), f"{self.folder}/hub/{REPO}: cannot create the folder")


class Encrypted(HubTest):
    def setUp(self):
        super().setUp()
        self.certificate = self.folder / "cert.pem"
        subprocess.run(["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2", "-subj", "/CN=127.0.0.1",
                        "-addext", "subjectAltName=IP:127.0.0.1", "-keyout", self.folder / "key.pem", "-out", self.certificate],
                       check=True, capture_output=True)
        both = self.folder / "both.pem"
        both.write_text((self.folder / "key.pem").read_text() + self.certificate.read_text())
        self.plain = self.hub
        self.hub = self.start({"tiny-Q4_K_M.gguf": File(MODEL)}, certificate=both)

    def test_certificates_are_checked(self):
        self.assert_error(self.run_knap(), f"{self.hub.url}/api/models/{REPO}/refs: SSL certificate problem")
        self.assertEqual(self.hub.requests, [])
        self.assert_done(self.run_knap(env=self.environment(SSL_CERT_FILE=str(self.certificate), HF_TOKEN=TOKEN)))
        self.assertEqual({request.server for request in self.hub.requests if request.token}, {"hub"})

    def test_names_of_certificates_are_checked(self):
        env = self.environment(SSL_CERT_FILE=str(self.certificate), HF_ENDPOINT=self.hub.url.replace("127.0.0.1", "localhost"))
        self.assert_error(self.run_knap(env=env), "SSL")

    def test_no_redirect_leaves_https(self):
        self.hub.storage_url = self.plain.url
        env = self.environment(SSL_CERT_FILE=str(self.certificate))
        self.assert_error(self.run_knap(env=env), "http")
        self.assertEqual(self.plain.requests, [])

    def test_a_file_without_certificates(self):
        self.assert_error(self.run_knap(env=self.environment(SSL_CERT_FILE="/dev/null")), "certificate")


if __name__ == "__main__":
    unittest.main()
