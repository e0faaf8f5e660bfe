"""Tests of what `make load` judges by: that growth and wrong sums are found, and noise is not; that an answer is the same in one
piece and streamed, and that a wrong one is found."""
import os
import random
import socket
import sys
import threading
import unittest
from pathlib import Path

sys.dont_write_bytecode = True
os.environ.setdefault("KNAP_BINARY", "none")
HERE = Path(__file__).resolve().parent
sys.path[1:1] = [str(HERE.parent / "clients"), str(HERE.parents[2] / "bench/serve")]
import answers  # noqa: E402
import clients  # noqa: E402
import pool  # noqa: E402
from answers import Choice, Told, WrongAnswer  # noqa: E402
from checks import growth, growth_checks, parse_metrics, points, slope, sums  # noqa: E402
from load import Load  # noqa: E402
from record import markdown, to_json  # noqa: E402
from seen import Seen  # noqa: E402


def samples(n=1800, period_s=2, leak_mib=0.0, lost=0.0, threads=15):
    """Made-up samples of an hour with noise: `leak_mib` grows in all, and `lost` descriptors."""
    rng = random.Random(1)
    return [{"s": i * period_s, "rss_mib": 500 + 60 * min(1, i / 200) + rng.uniform(-15, 15) + leak_mib * i / n,
             "descriptors": rng.randint(30, 70) + int(lost * i / n), "threads": threads,
             "yardstick_ms": rng.uniform(10, 30), "health_ms": rng.uniform(1, 60) * (20 if rng.random() < 0.05 else 1),
             "probe_ms": rng.uniform(100, 900) if rng.random() < 0.6 else None} for i in range(n)]


def wrong(found):
    return [check.what.split(":")[0] for check in found if not check.is_right]


class GrowthTest(unittest.TestCase):
    def test_noise_and_a_warm_start_are_no_growth(self):
        self.assertEqual(wrong(growth_checks(samples())), [])

    def test_growth_is_found(self):
        self.assertEqual(wrong(growth_checks(samples(leak_mib=120))), ["resident memory"])
        self.assertEqual(wrong(growth_checks(samples(lost=60))), ["open descriptors"])
        late = samples()
        for i, sample in enumerate(late):
            sample["threads"] += i // 100
            sample["health_ms"] += i
        self.assertEqual(wrong(growth_checks(late)), ["threads", "time of GET /health"])

    def test_a_machine_that_others_slow_is_no_growth(self):
        late = samples()
        for i, sample in enumerate(late):
            sample["health_ms"] += i
            sample["yardstick_ms"] += i / 40
        found = list(growth_checks(late))
        self.assertEqual(wrong(found), [])
        self.assertEqual([check.what.split(":")[0] for check in found if "not judged" in check.found],
                         ["time of GET /health", "time of an answer of one token"])

    def test_a_slope_ignores_wild_points(self):
        pairs = [(i, 2 * i + (1000 if i % 7 == 0 else 0)) for i in range(100)]
        self.assertAlmostEqual(slope(pairs), 2, places=3)

    def test_growth_is_that_of_the_second_half(self):
        times = list(range(100))
        self.assertEqual(growth(times, [min(time, 50) for time in times])[0], 0)
        self.assertAlmostEqual(growth(times, times)[0], 49.5)

    def test_points_leave_out_what_was_not_measured(self):
        self.assertEqual(points([1, 2, 3, 4], [10, None, 30, 40], 2), [(1, 10), (3.5, 35)])


METRICS = """# HELP llamacpp:prompt_tokens_total Prompt tokens computed.
llamacpp:prompt_tokens_total 60
llamacpp:prompt_tokens_cached_total 40
llamacpp:tokens_predicted_total 30
llamacpp:requests_processing 0
llamacpp:requests_deferred 0
vllm:request_success_total{model_name="m",engine="0",finished_reason="length"} 2
vllm:request_success_total{model_name="m",engine="0",finished_reason="stop"} 1
knap:disconnects_total 0
knap:requests_refused_total{code="400"} 1
"""


class SumsTest(unittest.TestCase):
    def setUp(self):
        self.seen = Seen()
        self.seen.answer(Told([Choice(end="length"), Choice(end="tool_calls")], n_prompt=70, n_cached=30, n_generated=20))
        self.seen.answer(Told([Choice(end="limit:")], n_prompt=30, n_cached=10, n_generated=10))
        self.seen.refusal(400)

    def wrong(self, text=METRICS):
        return [one.what for one in sums(parse_metrics(text), self.seen, 100) if not one.check().is_right]

    def test_what_clients_saw_fits(self):
        self.assertEqual(self.wrong(), [])

    def test_every_counter_that_does_not_fit_is_found(self):
        for before, after, what in ((" 60", " 61", "tokens of prompts computed"), (" 40", " 39", "tokens of prompts from the cache"),
                                    (" 30", " 31", "tokens generated"), ('"400"} 1', '"400"} 2', "refusals with 400"),
                                    ("processing 0", "processing 1", "answers under way at the end"),
                                    ("disconnects_total 0", "disconnects_total 1", "clients that left")):
            self.assertEqual(self.wrong(METRICS.replace(before, after)), [what])
        self.assertEqual(self.wrong(METRICS.replace('"stop"} 1', '"stop"} 2')), ["answers that ended with stop", "answers"])

    def test_an_answer_nobody_waited_for_may_be_counted(self):
        self.seen.left(1)
        self.seen.unsure(408)
        more = METRICS.replace('"stop"} 1', '"stop"} 2').replace(" 30", " 90").replace("disconnects_total 0", "disconnects_total 1")
        self.assertEqual(self.wrong(more + 'knap:requests_refused_total{code="408"} 1\n'), [])
        self.assertEqual(self.wrong(more.replace('"stop"} 2', '"error"} 2')),
                         ["answers that ended with error", "answers that ended with stop"])

    def test_a_fault_of_the_server_is_never_right(self):
        text = METRICS + 'knap:requests_refused_total{code="500"} 1\n'
        self.assertEqual(self.wrong(text), ["refusals with 500"])


def token(text):
    return {"token": text, "logprob": -0.5}


class AnswersTest(unittest.TestCase):
    def test_chat_streams_say_what_whole_answers_say(self):
        calls = [{"id": "call_1", "type": "function", "function": {"name": "f", "arguments": '{"a":1}'}}]
        whole = {"choices": [{"index": 0, "message": {"content": None, "tool_calls": calls}, "logprobs": {"content": [token("x")]},
                              "finish_reason": "tool_calls"}], "timings": {"cache_n": 1, "prompt_n": 2, "predicted_n": 3}}
        deltas = [{"content": None}, {"tool_calls": [{"index": 0, "id": "call_2", "function": {"name": "f", "arguments": ""}}]},
                  {"tool_calls": [{"index": 0, "function": {"arguments": '{"a"'}}]},
                  {"tool_calls": [{"index": 0, "function": {"arguments": ":1}"}}]}]
        events = [{"choices": [{"index": 0, "delta": delta, "logprobs": None, "finish_reason": None}]} for delta in deltas]
        events[1]["choices"][0]["logprobs"] = {"content": [token("x")]}
        events[1]["timings"] = {"predicted_n": 1}
        events.append({"choices": [{"index": 0, "delta": {}, "finish_reason": "tool_calls"}], "timings": whole["timings"]})
        found = answers.streamed(pool.CHAT, [*events, "[DONE]"])
        self.assertEqual(found, answers.whole(pool.CHAT, whole))
        self.assertEqual((found.n_prompt, found.n_generated), (3, 3))
        with self.assertRaisesRegex(WrongAnswer, "without .DONE."):
            answers.streamed(pool.CHAT, events)
        with self.assertRaisesRegex(WrongAnswer, "an error in a stream"):
            answers.streamed(pool.CHAT, [*events, {"error": {}}, "[DONE]"])

    def test_text_streams_say_what_whole_answers_say(self):
        def part(index, text, end):
            return {"index": index, "text": text, "finish_reason": end, "logprobs": {
                "tokens": list(text), "token_logprobs": [-1] * len(text), "top_logprobs": [{}] * len(text),
                "text_offset": list(range(len(text)))}}
        whole = {"choices": [part(0, "a", "stop"), part(1, "b", "length")]}
        events = [{"choices": [part(1, "b", None)]}, {"choices": [part(0, "a", None)]}, {"choices": [part(0, "", "stop")]},
                  {"choices": [part(1, "", "length")]}, "[DONE]"]
        self.assertEqual(answers.streamed(pool.TEXT, events), answers.whole(pool.TEXT, whole))

    def test_native_streams_say_what_whole_answers_say(self):
        end = {"stop": True, "stop_type": "word", "stopping_word": "."}
        whole = {"index": 0, "content": "ab", "tokens": [1, 2]} | end
        events = [{"index": 0, "content": "a", "tokens": [1], "stop": False}, {"index": 0, "content": "b", "tokens": [2], "stop": False},
                  {"index": 0, "content": "", "tokens": []} | end]
        self.assertEqual(answers.streamed(pool.NATIVE, events), answers.whole(pool.NATIVE, whole))

    def test_another_text_or_end_is_wrong(self):
        right = Told([Choice("ab", end="stop")])
        answers.compare("q", Told([Choice("ab", end="stop")], n_cached=4), right)
        for choice in (Choice("aB", end="stop"), Choice("ab", end="length"), Choice("ab", [["f", "{}"]], end="stop")):
            with self.assertRaises(WrongAnswer):
                answers.compare("q", Told([choice]), right)

    def test_variants_keep_what_decides_the_answer(self):
        rng = random.Random(1)
        for question in pool.questions() * 20:
            body = pool.varied(question, ["lookup"], rng)
            for name, value in question.body.items():
                self.assertEqual(body[name], value)


class Scripted:
    """A server that says the same to every connection."""

    def __init__(self, said):
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.port = self.listener.getsockname()[1]
        threading.Thread(target=self.serve, args=(said,), daemon=True).start()

    def serve(self, said):
        while True:
            connection, _ = self.listener.accept()
            with connection:
                connection.settimeout(0.2)
                try:
                    while connection.recv(1 << 16):
                        pass
                except TimeoutError:
                    pass
                connection.sendall(said)


def response(status, body):
    return b"HTTP/1.1 %d X\r\nConnection: close\r\nContent-Length: %d\r\n\r\n%s" % (status, len(body), body)


class ClientsTest(unittest.TestCase):
    """Clients and a server that is wrong."""

    def ask(self, said, kind=clients.asks):
        load = Load(Scripted(said).port, ["key"])
        load.questions = [pool.Question("q", pool.NATIVE, {"prompt": "A"})]
        load.strategies = ["lookup"]
        load.right = {"q": Told([Choice("yes", [], [1], "limit:")])}
        load.end()
        kind(load, random.Random(3))
        return load

    def test_wrong_answers_are_found(self):
        body = b'{"index":0,"content":"%s","tokens":[1],"stop":true,"stop_type":"limit","stopping_word":""}'
        for client in (clients.asks, clients.sends_bytewise):
            with self.assertRaisesRegex(WrongAnswer, "q: expected .*yes.*, found "):
                self.ask(response(200, body % b"no"), client)

    def test_refusals_of_good_requests_are_found(self):
        for status in (400, 500):
            with self.assertRaisesRegex(WrongAnswer, f"found {status}"):
                self.ask(response(status, b'{"error":{"message":"m"}}'))

    def test_other_refusals_than_documented_are_found(self):
        with self.assertRaisesRegex(WrongAnswer, "found 200"):
            self.ask(response(200, b"{}"), clients.lies)

    def test_words_to_an_idle_client_are_found(self):
        with self.assertRaisesRegex(WrongAnswer, "half a body"):
            self.ask(response(408, b""), clients.promises_more)


class RecordTest(unittest.TestCase):
    def test_a_report_tells_the_machine_the_command_and_what_is_wrong(self):
        load = Load(1, ["key"])
        load.seen.refusal(400)
        load.seen.visit("asks")
        load.fault("asks", WrongAnswer("q"))
        found = to_json({"seconds": 3601.2, "is_interrupted": True, "host": {"cpu": "a CPU", "n_cpus": 2}, "model": "m.gguf",
                         "knap": "1", "command": "run"}, load, samples(), list(growth_checks(samples(leak_mib=120))))
        self.assertFalse(found["is_right"])
        self.assertEqual(found["faults"], [{"client": "asks", "fault": "WrongAnswer: q"}])
        self.assertLessEqual(len(found["samples"]), 360)
        text = markdown(found)
        for words in ("3,601 s (interrupted) on 2 cores of a CPU; m.gguf; knap 1; `run`", "1 were refused (1 with 400)", "**no**",
                      "| asks | 1 |", "| probe_ms |"):
            self.assertIn(words, text)


if __name__ == "__main__":
    unittest.main()
