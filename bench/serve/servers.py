"""The two servers as processes: `knap serve` and llama.cpp's llama-server, on free ports of this machine."""
import asyncio
import signal
import socket
import subprocess
import tempfile
import time
from pathlib import Path

from client import call

START_S = 300   # to load a model on a slow disk


class ServerError(Exception):
    """A server did not start, or ended too early."""


def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def knap_command(options, n_parallel, n_ctx, extra=()):
    # Without work in idle time, so that an idle server leaves the machine to the other one.
    return [options.knap, "serve", "-m", options.model, "-t", str(options.threads), "-c", str(n_ctx), "--parallel",
            str(n_parallel), "--idle-work", "off", *extra]


def peer_command(options, n_parallel, n_ctx, extra=()):
    # llama.cpp divides its context among the slots. Without copies of idle slots in memory, which cost time.
    return [options.peer, "-m", options.model, "-t", str(options.threads), "-tb", str(options.threads), "-c",
            str(n_ctx * n_parallel), "-np", str(n_parallel), "--cache-ram", "0", *extra]


class Server:
    """A running server: `async with Server(name, command) as server`."""

    def __init__(self, name, command):
        self.name = name
        self.port = free_port()
        self.address = f"http://127.0.0.1:{self.port}"
        self.command = [*map(str, command), "--host", "127.0.0.1", "--port", str(self.port)]
        self._log = tempfile.NamedTemporaryFile(prefix="bench-serve-", suffix=".log")

    async def __aenter__(self):
        self._process = subprocess.Popen(self.command, stdout=self._log, stderr=subprocess.STDOUT,
                                         stdin=subprocess.DEVNULL)
        try:
            await self._until_ready()
        except BaseException:
            self._stop()
            raise
        return self

    async def __aexit__(self, *_):
        self._stop()

    async def _until_ready(self):
        end = time.monotonic() + START_S
        while time.monotonic() < end:
            if self._process.poll() is not None:
                raise ServerError(f"{self.name} ended with code {self._process.returncode}:\n{self._log_tail()}")
            try:
                await call(self, "GET", "/health")
                return
            except Exception:  # not listening yet, or still loading
                await asyncio.sleep(0.1)
        raise ServerError(f"{self.name} was not ready after {START_S} s:\n{self._log_tail()}")

    def _log_tail(self):
        return Path(self._log.name).read_text(errors="replace")[-2000:]

    def _stop(self):
        self._process.send_signal(signal.SIGTERM)
        try:
            self._process.wait(timeout=40)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()

    def rss_mib(self):
        """Resident memory, from the kernel."""
        for line in Path(f"/proc/{self._process.pid}/status").read_text().splitlines():
            if line.startswith("VmRSS:"):
                return int(line.split()[1]) / 1024
        raise ServerError(f"{self.name} has no memory: it ended")
