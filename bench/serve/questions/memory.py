"""Growth of resident memory over 10,000 short requests, after the first tenth of them."""
import asyncio
import itertools
from contextlib import AsyncExitStack

from bench import Row
from spread import spread

N_AT_ONCE = 8
N_CTX = 1024      # small, so that the first requests touch the whole cache
N_SAMPLES = 10
NOISE_MIB = 1.0   # what the allocator may keep more or less


async def measure(bench):
    n_requests = bench.options.n_requests
    rss = []
    async with AsyncExitStack() as stack:
        server = await bench.knap(stack, N_AT_ONCE, N_CTX)
        numbers = iter(range(n_requests))
        answered = itertools.count(1)

        async def client():
            for number in numbers:
                await bench.ask(server, f"Request {number}: what is {number * 7919 % 1000} plus {number % 97}?",
                                1 + number % 4)
                n_answered = next(answered)
                if n_answered % max(n_requests // N_SAMPLES, 1) == 0:
                    rss.append(server.rss_mib())
                    bench.note(f"memory: {rss[-1]:.1f} MiB after {n_answered} requests")
        await asyncio.gather(*(client() for _ in range(N_AT_ONCE)))
    return [Row("memory", f"memory growth over {n_requests} requests after the first {n_requests // N_SAMPLES}",
                spread([rss[-1] - rss[0]]), unit="MiB", most=NOISE_MIB, details={"rss_mib": rss})]
