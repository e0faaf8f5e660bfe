"""Time to the first token after a system prompt of 4,000 tokens that was seen before, over that after a new one."""
from contextlib import AsyncExitStack

from bench import Row
from spread import ratios, spread

N_PROMPT = 4000
N_ANSWER = 8
GOAL = 0.05


async def first_tokens(bench, server, systems):
    """Seconds with each system prompt when it is new, and with another question when it is known."""
    new, seen = [], []
    for system in systems:
        new.append((await bench.ask(server, "What is this text about?", N_ANSWER, system=system)).first_s)
        seen.append((await bench.ask(server, "Name one thing in it.", N_ANSWER, system=system)).first_s)
    return new, seen


def row(name, new, seen, goal=None):
    return Row("first-token", f"{name}: first token after {N_PROMPT} known tokens over new ones",
               spread(ratios(seen, new)), most=goal, details={"new_s": new, "seen_s": seen})


async def measure(bench):
    async with AsyncExitStack() as stack:
        knap = await bench.knap(stack)
        systems = await bench.prompts.documents(knap, N_PROMPT, bench.options.n_prompts)
        rows = [row("knap", *await first_tokens(bench, knap, systems), goal=GOAL)]
    if bench.options.peer:
        async with AsyncExitStack() as stack:
            rows.append(row("llama.cpp", *await first_tokens(bench, await bench.peer(stack), systems)))
    return rows
