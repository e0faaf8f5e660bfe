"""Tests of the arithmetic and of the reader of event streams in bench/serve."""
import asyncio
import sys
import unittest
from pathlib import Path

sys.dont_write_bytecode = True
sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "bench/serve"))
import agent_texts  # noqa: E402
from bench import Row  # noqa: E402
from client import Answer, chat_body  # noqa: E402
from questions import agent  # noqa: E402
from questions.prediction import changed  # noqa: E402
from report import command, markdown, to_json  # noqa: E402
from run import parse  # noqa: E402
from spread import quantile, ratios, spread  # noqa: E402
from sse import EventParser, HttpError, events, read_body, read_head, request_bytes  # noqa: E402


class ArithmeticTest(unittest.TestCase):
    def test_quantiles_lie_between_neighbours(self):
        values = [40, 10, 30, 20]
        self.assertEqual([quantile(values, share) for share in (0, 0.25, 0.5, 0.75, 1)], [10, 17.5, 25, 32.5, 40])

    def test_a_high_percentile_is_near_the_largest_value(self):
        self.assertAlmostEqual(quantile(range(1, 102), 0.99), 100)

    def test_one_value_is_its_own_spread(self):
        found = spread([3])
        self.assertEqual((found.n, found.low, found.median, found.high), (1, 3, 3, 3))

    def test_no_values_and_bad_shares_are_refused(self):
        for values, share in (([], 0.5), ([1], -0.1), ([1], 1.1)):
            with self.assertRaises(ValueError):
                quantile(values, share)

    def test_ratios_are_those_of_pairs(self):
        self.assertEqual(ratios([6, 10], [3, 20]), [2, 0.5])
        with self.assertRaises(ValueError):
            ratios([1], [1, 2])


def reader_of(data, is_complete=True):
    reader = asyncio.StreamReader()
    reader.feed_data(data)
    if is_complete:
        reader.feed_eof()
    return reader


async def all_events(data):
    return [event async for event in events(reader_of(data))]


def chunked(*pieces):
    body = b"".join(b"%x\r\n%s\r\n" % (len(piece), piece) for piece in pieces)
    return b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n" + body + b"0\r\n\r\n"


class EventStreamsTest(unittest.TestCase):
    STREAM = ': wait\n\ndata: {"a": "é"}\r\n\r\nevent: x\ndata:one\ndata: two\n\n\ndata: [DONE]\n\n'.encode()
    EVENTS = ['{"a": "é"}', "one\ntwo", "[DONE]"]

    def test_events_do_not_depend_on_how_bytes_arrive(self):
        for size in range(1, len(self.STREAM) + 1):
            parser = EventParser()
            pieces = [self.STREAM[i:i + size] for i in range(0, len(self.STREAM), size)]
            self.assertEqual([event for piece in pieces for event in parser.feed(piece)], self.EVENTS)

    def test_an_unfinished_event_is_not_given(self):
        self.assertEqual(EventParser().feed(b"data: 1\n"), [])

    def test_answers_in_chunks_and_without_length_are_read(self):
        text = b'data: {"n": 1}\n\ndata: {"n": 2}\n\ndata: [DONE]\n\n'
        whole = b"HTTP/1.1 200 OK\r\n\r\n" + text
        for data in (chunked(text[:9], text[9:20], text[20:]), whole):
            self.assertEqual(asyncio.run(all_events(data)), [{"n": 1}, {"n": 2}])

    def test_a_stream_that_breaks_off_is_an_error(self):
        with self.assertRaisesRegex(HttpError, "without .DONE."):
            asyncio.run(all_events(chunked(b'data: {"n": 1}\n\n')))

    def test_errors_of_the_server_are_errors(self):
        with self.assertRaisesRegex(HttpError, "error in the stream: broken"):
            asyncio.run(all_events(chunked(b'data: {"error": "broken"}\n\n')))
        with self.assertRaisesRegex(HttpError, "status 429: later"):
            asyncio.run(all_events(b"HTTP/1.1 429 Slow\r\nContent-Length: 5\r\n\r\nlater"))

    def test_a_connection_serves_several_answers(self):
        async def read():
            data = chunked(b"o", b"k") + b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok"
            reader = reader_of(data * 2, is_complete=False)
            heads = []
            for _ in range(4):
                heads.append(await read_head(reader))
                self.assertEqual(await read_body(reader, heads[-1][1]), b"ok")
            return [status for status, _ in heads]
        self.assertEqual(asyncio.run(read()), [200] * 4)

    def test_what_is_not_http_is_an_error(self):
        with self.assertRaisesRegex(HttpError, "expected a status line"):
            asyncio.run(all_events(b"hello\r\n\r\n"))

    def test_the_length_of_a_request_is_in_bytes(self):
        self.assertIn(b'Content-Length: 15\r\n\r\n{"a": "\\u00e9"}', request_bytes("POST", "/", {"a": "é"}))


class AnswersTest(unittest.TestCase):
    def test_chunks_become_an_answer(self):
        answer = Answer()
        answer.add({"choices": [{"delta": {"role": "assistant", "content": None}}]}, start=0)
        self.assertEqual(answer.first_s, 0)
        answer.add({"choices": [{"delta": {"content": "ab"}}], "usage": None}, start=0)
        self.assertGreater(answer.first_s, 0)
        answer.add({"choices": [], "usage": {"completion_tokens": 12}, "timings": {"predicted_per_second": 7}}, start=0)
        answer.wall_s = 3
        self.assertEqual((answer.text, answer.decode_rate, answer.stream_rate), ("ab", 7, 4))

    def test_a_field_of_none_is_left_out(self):
        self.assertNotIn("ignore_eos", chat_body("hello", 8, ignore_eos=None))
        self.assertTrue(chat_body("hello", 8)["ignore_eos"])

    def test_a_changed_prediction_keeps_nine_lines_in_ten(self):
        lines = [f"line {i}" for i in range(30)]
        kept = set(changed("\n".join(lines)).split("\n")) & set(lines)
        self.assertEqual(len(kept), 27)


class AgentTest(unittest.TestCase):
    def test_edits_build_on_each_other(self):
        text = agent_texts.FILE
        self.assertTrue(60 <= text.count("\n") <= 100)
        for (instruction, old, new), after in zip(agent_texts.EDITS, agent_texts.edited_files(), strict=True):
            self.assertEqual(text.count(old), 1, instruction)
            text = text.replace(old, new)
            self.assertEqual(text, after)
            compile(text, "file", "exec")

    def test_a_conversation_holds_the_right_answers(self):
        requests = agent.edit_requests(10)
        self.assertEqual(len(requests), 10)
        for (messages, _), (later, _) in zip(requests, requests[1:]):
            self.assertEqual(later[:len(messages)], messages)
        first, answer = requests[0]
        self.assertEqual([message["role"] for message in first], ["user", "assistant"] * agent_texts.N_DONE + ["user"])
        self.assertEqual(requests[1][0][len(first)]["content"], answer)
        self.assertIn(agent_texts.FILE, first[0]["content"])

    def test_forms_have_notes_of_their_own(self):
        requests = agent.form_requests(20)
        self.assertEqual(len({note for _, note in requests}), 20)
        self.assertEqual(set(agent_texts.EXAMPLE[1]), set(agent_texts.FORM["required"]))
        for messages, note in requests:
            self.assertTrue(messages[-1]["content"].endswith(note))

    def test_what_is_right_of_a_text(self):
        self.assertEqual(agent.right_lines("a\n\nc\n", "a\nb"), 0.5)
        note = "Mr Low, 555 0100: a kite with a hole."
        form = '{"customer": "Mr Low", "phone": "555 0100", "item": "Kite", "fault": "does not fly"}'
        self.assertEqual(agent.right_fields(form, note), 0.75)
        self.assertEqual(agent.right_fields(form[:-1], note), 0)

    def test_runs_of_three_tokens(self):
        self.assertEqual(agent.distinct_share([1, 2, 1, 2, 1, 2]), 0.5)
        self.assertEqual(agent.distinct_share([1, 2]), 1)

    def test_repeats_are_put_beside_each_other(self):
        found = {"n_tokens": 9, "distinct_trigrams": 0.9, "right": 1, "knap": 30, "plain": 10, "again": 1, "request": 2}
        row = agent.row_of("edits", [[found, found], [found | {"knap": 50}, found]])
        self.assertEqual(row.details["knap"], [[30, 50], [30, 30]])
        self.assertEqual(row.details["n_tokens"], [9, 9])
        self.assertEqual((row.spread.n, row.spread.high, row.is_reached), (2, 3.75, True))


class ReportsTest(unittest.TestCase):
    SETTING = {"cpu": "a CPU", "threads": 2, "model": "m.gguf", "versions": {"knap": "1"}, "client": "own",
               "data": "built-in texts", "n_prompts": 1, "n_tokens": 8}

    def test_goals_are_compared_with_the_median(self):
        self.assertTrue(Row("q", "w", spread([1, 3, 9]), least=3).is_reached)
        self.assertFalse(Row("q", "w", spread([1, 3, 9]), least=3.1).is_reached)
        self.assertFalse(Row("q", "w", spread([60]), unit="ms", most=50).is_reached)
        self.assertTrue(Row("q", "w", spread([50]), unit="ms", most=50).is_reached)

    def test_a_table_names_its_setting(self):
        text = markdown(self.SETTING, [Row("q", "speed", spread([2, 3, 4]), least=2.5)])
        self.assertIn("| speed | 3 | 2.5 to 3.5 | 3 | at least 2.5 | yes |", text)
        self.assertIn("a CPU, 2 threads; m.gguf; knap: 1; answers of 8 tokens", text)

    def test_a_file_names_the_command_without_folders(self):
        names, options, _ = parse(["--knap", "/a/knap", "--model", "/b/m.gguf", "--only", "agent,schema", "-t", "2"])
        self.assertEqual(command(names, options), "bench/serve/run.py --knap build/knap --model m.gguf --only agent,schema -t 2 "
                                                  "--prompts 6 -n 128 --edits 10 --forms 20")
        file = to_json({"format": 1}, self.SETTING, [Row("q", "speed", spread([2]))])
        self.assertEqual((file["format"], file["rows"][0]["what"], file["setting"]["threads"]), (1, "speed", 2))


if __name__ == "__main__":
    unittest.main()
