"""`/health` while 500 connections are idle and eight answers stream."""
import asyncio
import resource
import time
from contextlib import AsyncExitStack

from bench import Row
from questions.streams import N_CTX, N_STREAMS
from spread import quantile, spread
from sse import read_body, read_head, request_bytes

PAUSE_S = 0.01
GOAL_MS = 50


async def idle_connection(port, opened):
    """Opens a connection, asks once, and keeps it; a new one when the server closes it."""
    while True:
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        writer.write(request_bytes("GET", "/health", keeps_alive=True))
        _, headers = await read_head(reader)
        await read_body(reader, headers)
        opened.release()
        await reader.read()
        writer.close()


async def busy_stream(bench, server, prompt):
    while True:
        await bench.ask(server, prompt)


async def health_ms(port):
    """How long a new connection waits for its answer."""
    start = time.perf_counter()
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    writer.write(request_bytes("GET", "/health"))
    _, headers = await read_head(reader)
    await read_body(reader, headers)
    writer.close()
    return 1000 * (time.perf_counter() - start)


async def measure(bench):
    options = bench.options
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (min(hard, 65536), hard))
    async with AsyncExitStack() as stack:
        server = await bench.knap(stack, N_STREAMS, N_CTX)
        prompts = await bench.prompts.tasks(server, N_STREAMS)
        opened = asyncio.Semaphore(0)
        tasks = [asyncio.create_task(idle_connection(server.port, opened)) for _ in range(options.n_idle)]
        for _ in range(options.n_idle):
            await opened.acquire()
        tasks += [asyncio.create_task(busy_stream(bench, server, prompt)) for prompt in prompts]
        await asyncio.sleep(1)   # until the streams compute
        times = []
        end = time.monotonic() + options.health_s
        while time.monotonic() < end:
            times.append(await health_ms(server.port))
            await asyncio.sleep(PAUSE_S)
        failed = [task.exception() for task in tasks if task.done()]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
    if failed:
        raise failed[0]
    what = f"`/health` beside {options.n_idle} idle connections and {N_STREAMS} streams"
    return [Row("idle", f"{what}, all {len(times)} answers", spread(times), unit="ms", details={"ms": times}),
            Row("idle", f"{what}, 99th percentile", spread([quantile(times, 0.99)]), unit="ms", most=GOAL_MS)]
