"""Eight streams at once: tokens/s of all together over llama.cpp's server with eight slots."""
import asyncio
import time
from contextlib import AsyncExitStack

from bench import Row, in_turns
from spread import ratios, spread

N_STREAMS = 8
N_CTX = 4096   # of each stream
N_ROUNDS = 2   # prompts of each stream in a load


async def load_rate(bench, server, prompts):
    """Tokens/s of a load: each stream takes the next prompt when it is done. Prompts count as time."""
    waiting = iter(prompts)

    async def stream():
        return sum([(await bench.ask(server, prompt)).n_tokens for prompt in waiting])
    start = time.perf_counter()
    counts = await asyncio.gather(*(stream() for _ in range(N_STREAMS)))
    return sum(counts) / (time.perf_counter() - start)


async def measure(bench):
    n_loads = max(bench.options.n_prompts // 2, 1)
    async with AsyncExitStack() as stack:
        knap = await bench.knap(stack, N_STREAMS, N_CTX)
        trial = await bench.prompts.tasks(knap, N_STREAMS)
        loads = [await bench.prompts.tasks(knap, N_STREAMS * N_ROUNDS) for _ in range(n_loads)]
        mode, trial_rates = await bench.best_peer_mode(lambda server: load_rate(bench, server, trial), N_STREAMS,
                                                       N_CTX)
        peer = await bench.peer(stack, mode, N_STREAMS, N_CTX)
        pairs = [await in_turns(i, lambda: load_rate(bench, knap, load), lambda: load_rate(bench, peer, load))
                 for i, load in enumerate(loads)]
    ours, theirs = map(list, zip(*pairs))
    return [Row("streams", f"{N_STREAMS} streams over llama.cpp with {N_STREAMS} slots ({', '.join(mode)}), total tokens/s",
                spread(ratios(ours, theirs)), least=3,
                details={"knap": ours, "llama.cpp": theirs, "trial": trial_rates})]
