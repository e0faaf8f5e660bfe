"""The server seen from outside, every few seconds: memory, descriptors, threads, and how long it takes to answer."""
import os
import threading
import time
from pathlib import Path

from checks import parse_metrics
from wire import Late, Wire, head_bytes, json_headers, post_bytes

PROBE = {"prompt": "A", "max_tokens": 1, "temperature": 0, "knap": {"strategy": "autoregressive"}}


def resources(pid):
    status = dict(line.split(":", 1) for line in Path(f"/proc/{pid}/status").read_text().splitlines())
    return {"rss_mib": round(int(status["VmRSS"].split()[0]) / 1024, 2), "threads": int(status["Threads"]),
            "descriptors": len(os.listdir(f"/proc/{pid}/fd"))}


def timed(load, data, method):
    """(Milliseconds, answer) of a request on a connection of its own."""
    start = time.perf_counter()
    with Wire(load.port) as wire:
        wire.send(data)
        answer = wire.answer(method)
    return round(1000 * (time.perf_counter() - start), 2), answer


def yardstick_ms():
    """How long a fixed piece of work takes here: longer when other programs need the cores."""
    start = time.perf_counter()
    sum(range(1 << 20))
    return round(1000 * (time.perf_counter() - start), 2)


class Watch:
    """Samples until the load is over."""

    def __init__(self, load, pid, period_s):
        self._load = load
        self._pid = pid
        self._period_s = period_s
        self.samples = []
        self._start = time.monotonic()
        self._thread = threading.Thread(target=self._run, name="watch", daemon=True)
        self._thread.start()

    def join(self):
        self._thread.join()

    def _run(self):
        while not self._load.is_over:
            try:
                self.samples.append(self._sample())
            except Late:
                self._load.seen.late()
            except (OSError, ValueError, KeyError) as error:
                self._load.fault("watch", error)
                return
            self._load.wait(self._period_s)

    def _sample(self):
        found = {"s": round(time.monotonic() - self._start, 1)} | resources(self._pid)
        found["health_ms"], answer = timed(self._load, head_bytes("GET", "/health", {"Host": "localhost"}), "GET")
        if answer.status != 200:
            raise ValueError(f"GET /health: expected status 200, found {answer.status}")
        found["cache_percent"] = self._cache_percent()
        found["probe_ms"] = self._probe()
        found["yardstick_ms"] = yardstick_ms()
        return found

    def _cache_percent(self):
        """Of the rows of the KV cache that are in use: their memory counts from when they are used first."""
        _, answer = timed(self._load, head_bytes("GET", "/metrics", json_headers(self._load.keys[0])), "GET")
        metrics = parse_metrics(answer.body.decode())
        return round(100 * next(value for name, value in metrics.items() if name.startswith("vllm:kv_cache_usage_perc")), 1)

    def _probe(self):
        """None where the queue was full."""
        ms, answer = timed(self._load, post_bytes("/completion", PROBE, self._load.keys[0]), "POST")
        if answer.status == 429:
            self._load.seen.refusal(429)
            return None
        self._load.check_probe(answer)
        return ms
