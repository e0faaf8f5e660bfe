"""From start to end (spec 7 and 9): disconnects, deadlines, signals, kill -9, long prompts."""

import concurrent.futures
import os
import signal
import subprocess
import threading
import time

import pytest

from served import KNAP, Served, Stream, free_port, greedy_text

ENDLESS = {"ignore_eos": True, "temperature": 0}
LONG_PROMPT = [{"role": "user", "content": "All work and no play makes a dull story. " * 600}]


def endless(server, n):
    streams = [Stream(server, **ENDLESS) for _ in range(n)]
    assert [stream.status() for stream in streams] == [200] * n
    return streams


def wait_for_metric(server, name, value, seconds=10):
    """Returns how long it took."""
    start = time.monotonic()
    while server.metric(name) != value:
        assert time.monotonic() - start < seconds, f"{name} is {server.metric(name)}, expected {value}"
        time.sleep(0.01)
    return time.monotonic() - start


def test_disconnect_frees_the_session(server):
    before = server.metric("knap:disconnects_total")
    streams = endless(server, 3)
    server.wait_for_busy(3, 10)
    for stream in streams:
        next(stream.events())
        stream.close()
    assert server.wait_for_busy(0, 5) <= 1
    assert server.metric("knap:disconnects_total") == before + 3


def test_disconnect_while_the_prompt_is_read(server):
    stream = Stream(server, messages=LONG_PROMPT, cache_prompt=False, max_tokens=4)
    server.wait_for_busy(1, 10)
    stream.close()
    assert server.wait_for_busy(0, 5) <= 1


def test_disconnect_while_nothing_is_streamed(server):
    before = server.metric("knap:disconnects_total")
    stream = Stream(server, stream=False, **ENDLESS)
    server.wait_for_busy(1, 10)
    stream.close()
    assert server.wait_for_busy(0, 5) <= 1
    wait_for_metric(server, "knap:disconnects_total", before + 1)
    time.sleep(0.2)
    assert server.metric('knap:requests_refused_total{code="500"}') == 0, "who leaves is no fault of the server"


def test_disconnect_while_waiting_for_a_session():
    with Served("--parallel", "1") as served:
        running = endless(served, 1)
        served.wait_for_busy(1, 10)
        waiting = [Stream(served, **ENDLESS), Stream(served, stream=False, **ENDLESS)]
        wait_for_metric(served, "llamacpp:requests_deferred", 2)
        for stream in waiting:
            stream.close()
        assert wait_for_metric(served, "llamacpp:requests_deferred", 0) <= 1
        assert served.n_busy() == 1, "the answer under way goes on"
        running[0].close()
        served.wait_for_busy(0, 5)
        assert served.stop() == 0


def test_answer_of_a_client_that_does_not_read_is_paused():
    """Its tokens are no more after a while; they come when it reads, none lost."""
    n_tokens = 4000  # more than twice what the system keeps of a connection, 4 MiB on Linux
    fields = {"logprobs": True, "top_logprobs": 20, "max_tokens": n_tokens, "messages": [{"role": "user", "content": "Hi"}]}
    with Served("--parallel", "1") as served:
        expected = served.chat("Hi", ignore_eos=True, max_tokens=n_tokens).json()["choices"][0]["message"]["content"]
        stream = Stream(served, receive_bytes=4096, **ENDLESS | fields)
        counts = [0]
        while len(counts) < 2 or counts[-1] != counts[-2] or counts[-1] == 0:
            time.sleep(0.5)
            counts.append(served.get("/slots").json()[0]["n_decoded"])
        assert counts[-1] < n_tokens and served.n_busy() == 1
        assert stream.status() == 200
        events = [event for event in stream.events() if event != "[DONE]"]
        assert "".join(event["choices"][0]["delta"].get("content") or "" for event in events) == expected
        served.wait_for_busy(0, 5)
        assert served.stop() == 0


def test_state_is_told_at_once_during_a_long_prompt(server):
    start = time.monotonic()
    stream = Stream(server, messages=LONG_PROMPT, cache_prompt=False, max_tokens=1)
    assert stream.status() == 200 and time.monotonic() - start < 1, "headers come within a second"
    server.wait_for_busy(1, 10)
    times = []
    for _ in range(10):
        for path in ("/metrics", "/health", "/slots"):
            start = time.monotonic()
            assert server.get(path).status == 200
            times.append(time.monotonic() - start)
    assert server.n_busy() == 1, "the prompt was read before it was measured"
    assert sorted(times)[len(times) * 9 // 10] < 0.1
    stream.close()
    server.wait_for_busy(0, 5)


def test_strategies_differ_between_concurrent_requests(server):
    names = ["autoregressive", "knapspec", "lookup"]
    streams = [Stream(server, knap={"strategy": name}, **ENDLESS) for name in names]
    server.wait_for_busy(len(names), 10)
    assert sorted(slot["strategy"] for slot in server.get("/slots").json() if slot["is_processing"]) == sorted(names)
    for stream in streams:
        stream.close()
    server.wait_for_busy(0, 5)


def test_deadline_ends_with_length():
    with Served("--timeout", "1") as served:
        start = time.monotonic()
        answer = served.chat(max_tokens=-1, ignore_eos=True).json()
        assert answer["choices"][0]["finish_reason"] == "length"
        assert answer["usage"]["total_tokens"] < 8192
        assert 0.9 < time.monotonic() - start < 10
        events = list(Stream(served, **ENDLESS).events())
        assert events[-1] == "[DONE]" and events[-2]["choices"][0]["finish_reason"] == "length"
        assert served.stop() == 0


def test_sigterm_lets_answers_finish():
    with Served("--parallel", "2") as served:
        expected = served.chat(max_tokens=300, ignore_eos=True).json()["choices"][0]["message"]["content"]
        served.wait_for_busy(0, 10)   # its session is free a little later than its answer is there
        with concurrent.futures.ThreadPoolExecutor(5) as threads:
            running = [threads.submit(served.chat, max_tokens=300, ignore_eos=True) for _ in range(4)]
            served.wait_for_busy(2, 10)
            wait_for_metric(served, "llamacpp:requests_deferred", 2, 60)
            # A connection from before: the listener closes in the end, answers under way do not.
            kept = served.connect()
            kept.connect()
            code = threads.submit(served.stop)
            time.sleep(0.2)
            kept.request("POST", "/v1/completions", b'{"prompt":"A"}', {"Content-Type": "application/json"})
            refused = kept.getresponse()
            assert refused.status == 503 and int(refused.headers["Retry-After"]) >= 1
            assert [answer.result().json()["choices"][0]["message"]["content"] for answer in running] == [expected] * 4
            assert code.result() == 0


def test_sigint_ends_with_130():
    with Served() as served:
        assert served.chat().status == 200
        assert served.stop(signal.SIGINT) == 130


def test_second_signal_ends_at_once():
    with Served() as served:
        stream = Stream(served, **ENDLESS)
        assert stream.status() == 200
        served.process.send_signal(signal.SIGTERM)
        time.sleep(0.3)
        assert served.process.poll() is None
        start = time.monotonic()
        assert served.stop(signal.SIGTERM) != 0
        assert time.monotonic() - start < 2


def test_killed_server_starts_again_with_damaged_files(tmp_path):
    """A small model, whose costs and plans are found in a second."""
    environment = {"KNAP_CACHE_DIR": str(tmp_path / "store")}
    model, text = tmp_path / "model.gguf", tmp_path / "text.txt"
    text.write_text("All work and no play makes a dull story. " * 40)
    for arguments in (["make-model", "--shape", "tiny-llama", "--type", "Q8_0", "-o", model],
                      ["profile", "-m", model, "--seconds", "0.2", "--plans", "-f", text]):
        subprocess.run([KNAP, *arguments], check=True, env=os.environ | environment, stdout=subprocess.DEVNULL)
    files = list((tmp_path / "store").iterdir())
    assert sorted(file.name.split("-")[0] for file in files) == ["plans", "profile"]
    asked = {"prompt": [1, 2, 3] * 50, "max_tokens": 64, "ignore_eos": True}
    with Served("-m", str(model), environment=environment) as served:
        expected = greedy_text(served.complete(**asked))
        stream = Stream(served, "/v1/completions", stream=True, **asked | ENDLESS)
        assert stream.status() == 200 and "ignored" not in served.output
        served.process.kill()
        served.process.wait()
        stream.close()
    for file in files:
        file.write_bytes(file.read_bytes()[: file.stat().st_size // 2] + b"\x00\xff")
    with Served("-m", str(model), environment=environment) as again:
        assert greedy_text(again.complete(**asked)) == expected
        assert again.stop() == 0
        warnings = [line for line in again.output.splitlines() if "ignored: expected a JSON object, found damaged text" in line]
        assert all(any(str(file) in line for line in warnings) for file in files), again.output


def test_requests_while_loading_get_503():
    with Served(port=free_port(), waits=False) as served:
        answers = []
        while not answers or answers[-1].status != 200:
            try:
                answers.append(served.get("/health"))
            except ConnectionRefusedError:
                assert served.process.poll() is None
            time.sleep(0.001)
        loading = answers[:-1]
        assert loading, "the model was loaded before the first request"
        for answer in loading:
            assert answer.status == 503 and answer.error["type"] == "unavailable_error"
            assert int(answer.headers["retry-after"]) >= 1
        assert served.stop() == 0


def test_slots_and_metrics_can_be_switched_off():
    with Served("--no-slots", "--no-metrics", "--parallel", "1", "--alias", "mine") as served:
        for path in ("/slots", "/metrics"):
            answer = served.get(path)
            assert answer.status == 501 and answer.error["type"] == "not_supported_error"
        assert served.get("/v1/models").json()["data"][0]["id"] == "mine"
        assert served.get("/v1/models/mine").status == 200
        assert served.stop() == 0


def test_large_requests_leave_no_memory_behind():
    with Served("--idle-work", "off") as served:
        def resident_mib():
            with open(f"/proc/{served.process.pid}/status") as status:
                return next(int(line.split()[1]) for line in status if line.startswith("VmRSS")) / 1024

        for _ in range(20):
            assert served.complete(max_tokens=2).status == 200
        before = resident_mib()
        with concurrent.futures.ThreadPoolExecutor(4) as threads:
            for metadata in ("x" * 30_000_000, [1] * 8_000_000):
                answers = threads.map(lambda _: served.complete(max_tokens=2, metadata=metadata), range(8))
                assert {answer.status for answer in answers} == {200}
        assert served.complete(max_tokens=2).status == 200
        end = time.monotonic() + 5   # an answer is there a little before its request is freed
        while resident_mib() - before >= 64 and time.monotonic() < end:
            time.sleep(0.1)
        assert resident_mib() - before < 64
        assert served.stop() == 0


def test_every_session_has_the_whole_context():
    with Served("--parallel", "2", "-c", "512") as served:
        assert [slot["n_ctx"] for slot in served.get("/slots").json()] == [512, 512]
        prompt = [1] * 500
        with concurrent.futures.ThreadPoolExecutor(2) as threads:
            answers = list(threads.map(lambda _: served.complete(prompt, max_tokens=-1, ignore_eos=True, cache_prompt=False),
                                       range(2)))
        for answer in answers:
            assert answer.json()["usage"]["total_tokens"] == 512
            assert answer.json()["choices"][0]["finish_reason"] == "length"
        assert served.stop() == 0


def test_500_streams_do_not_starve_the_state():
    with Served("--parallel", "2", "--queue", "498") as served:
        streams = endless(served, 500)   # the headers of all are there, also of those that wait
        wait_for_metric(served, "llamacpp:requests_deferred", 498)
        times = []
        for _ in range(20):
            for path in ("/health", "/metrics", "/slots"):
                start = time.monotonic()
                assert served.get(path).status == 200
                times.append(time.monotonic() - start)
        assert served.get("/slots?fail_on_no_slot=1").status == 503
        assert served.complete().status == 429, "the queue is full"
        for stream in streams:
            stream.close()
        served.wait_for_busy(0, 10)
        wait_for_metric(served, "llamacpp:requests_deferred", 0)
        assert served.stop() == 0
    assert sorted(times)[len(times) * 9 // 10] < 0.1


@pytest.mark.parametrize("n_idle", [500])
def test_idle_connections_do_not_slow_the_others(server, n_idle):
    idle = [server.connect() for _ in range(n_idle)]
    for connection in idle:
        connection.connect()
    streams = endless(server, 4)
    readers = [threading.Thread(target=lambda stream=stream: list(stream.events()), daemon=True) for stream in streams]
    for reader in readers:
        reader.start()
    times = []
    for _ in range(50):
        start = time.monotonic()
        assert server.get("/health").status == 200
        times.append(time.monotonic() - start)
    assert sorted(times)[45] < 0.1
    for connection in idle:
        connection.close()
    for stream in streams:
        stream.socket.shutdown(2)
    for reader in readers:
        reader.join()
    server.wait_for_busy(0, 5)
