"""The files of deploy/: HAProxy over three replicas, one killed under load; Prometheus' and systemd's own checks."""

import concurrent.futures
import http.client
import json
import os
import pathlib
import re
import shutil
import signal
import subprocess
import threading
import time

import pytest

from served import Answer, Served, Stream, free_port

DEPLOY = pathlib.Path(__file__).parents[3] / "deploy"
REPLICA = ["-c", "512", "-t", "1", "--parallel", "2", "--idle-work", "off"]
N_CLIENTS = 9
N_REQUESTS = 6  # of each client
QUESTIONS = [f"Tell me about the number {n}." for n in range(N_CLIENTS)]


class Balancer:
    """haproxy with our configuration, before the given replicas."""

    def __init__(self, replicas):
        self.port = free_port()
        addresses = {f"KNAP_REPLICA_{i + 1}": f"127.0.0.1:{replica.port}" for i, replica in enumerate(replicas)}
        self.process = subprocess.Popen(["haproxy", "-f", str(DEPLOY / "haproxy.cfg")],
                                        env=os.environ | addresses | {"KNAP_BIND": f"127.0.0.1:{self.port}"})

    def post(self, body):
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=300)
        try:
            connection.request("POST", "/v1/chat/completions", json.dumps(body).encode(), {"Content-Type": "application/json"})
            return Answer(connection.getresponse())
        finally:
            connection.close()

    def wait_until_ready(self):
        deadline = time.monotonic() + 30
        while True:
            try:
                if self.post({"messages": [{"role": "user", "content": "Hi"}], "max_tokens": 1}).status == 200:
                    return
            except OSError:
                pass
            assert time.monotonic() < deadline and self.process.poll() is None
            time.sleep(0.1)


class DirectTo:
    """A replica, asked without the balancer."""

    def __init__(self, replica):
        self.replica = replica

    def post(self, body):
        return self.replica.post("/v1/chat/completions", body)


def body_of(client):
    sampling = {"temperature": 0} if client % 2 else {"temperature": 1, "seed": 100 + client}
    return {"messages": [{"role": "user", "content": QUESTIONS[client]}], "max_tokens": 24} | sampling


def whole_text(balancer, body):
    answer = balancer.post(body)
    assert answer.status == 200, answer.body
    return answer.json()["choices"][0]["message"]["content"]


def streamed_text(balancer, body):
    stream = Stream(balancer, **body)
    try:
        assert stream.status() == 200
        events = list(stream.events())
        assert events and events[-1] == "[DONE]", "the stream was cut"
        return "".join(event["choices"][0]["delta"].get("content") or "" for event in events[:-1])
    finally:
        stream.close()


@pytest.fixture
def replicas():
    started = [Served(*REPLICA) for _ in range(3)]
    yield started
    for replica in started:
        replica.process.kill()
        replica.process.wait()


@pytest.mark.skipif(shutil.which("haproxy") is None, reason="needs haproxy")
def test_killed_replica_loses_only_what_it_was_answering(replicas):
    expected = [whole_text(DirectTo(replicas[1]), body_of(client)) for client in range(N_CLIENTS)]
    balancer = Balancer(replicas)
    lost, wrong, answered_later = [], [], []
    lock = threading.Lock()

    def ask(client):
        text_of = streamed_text if client % 3 == 0 else whole_text
        for _ in range(N_REQUESTS):
            while True:
                try:
                    text = text_of(balancer, body_of(client))
                    break
                except (AssertionError, OSError, ValueError, http.client.HTTPException) as error:
                    with lock:
                        lost.append(str(error))
                    assert len(lost) < 100
            with lock:
                if text != expected[client]:
                    wrong.append((client, text))
                if replicas[0].process.poll() is not None:
                    answered_later.append(client)

    try:
        balancer.wait_until_ready()
        with concurrent.futures.ThreadPoolExecutor(N_CLIENTS) as threads:
            clients = [threads.submit(ask, client) for client in range(N_CLIENTS)]
            while replicas[0].n_busy() == 0:
                time.sleep(0.01)
            # It may have taken one more of every client since it was asked.
            replicas[0].process.send_signal(signal.SIGKILL)
            for client in clients:
                client.result()
    finally:
        balancer.process.terminate()
        balancer.process.wait(30)
    assert not wrong
    assert len(answered_later) > N_CLIENTS, "the replica was killed after the load"
    assert len(lost) <= N_CLIENTS, lost
    assert replicas[1].metric('knap:requests_refused_total{code="500"}') == 0


@pytest.mark.skipif(shutil.which("promtool") is None, reason="needs promtool")
def test_prometheus_accepts_configuration_and_metrics(replicas):
    subprocess.run(["promtool", "check", "config", str(DEPLOY / "prometheus.yml")], check=True)
    subprocess.run(["promtool", "check", "rules", str(DEPLOY / "alerts.yml")], check=True)
    assert replicas[0].chat().status == 200
    result = subprocess.run(["promtool", "check", "metrics"], input=replicas[0].get("/metrics").body, capture_output=True)
    # 3: read, with remarks about names, which are llama.cpp's and vLLM's.
    assert result.returncode in (0, 3), result.stderr
    assert b"error while linting" not in result.stderr


def test_dashboard_asks_for_metrics_that_exist():
    dashboard = json.loads((DEPLOY / "grafana.json").read_text())
    with Served(*REPLICA) as served:
        served.chat(max_tokens=12)
        served.chat(temperature=9)
        names = {line.split("{")[0].split(" ")[0] for line in served.get("/metrics").body.decode().splitlines()}
        assert served.stop() == 0
    asked = {name for panel in dashboard["panels"] for target in panel["targets"]
             for name in re.findall(r"(?:llamacpp|vllm|knap):[a-z_]+", target["expr"])}
    assert asked and asked <= names


@pytest.mark.skipif(shutil.which("systemd-analyze") is None, reason="needs systemd-analyze")
def test_unit_is_valid(tmp_path):
    unit = tmp_path / "knap.service"
    unit.write_text((DEPLOY / "knap.service").read_text().replace("/usr/local/bin/knap", os.environ["KNAP_BINARY"]))
    result = subprocess.run(["systemd-analyze", "verify", str(unit)], capture_output=True, text=True)
    assert "knap.service" not in result.stderr, result.stderr
