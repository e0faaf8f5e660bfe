"""One stream over llama.cpp's server in its fastest mode, after prompts of 512 and 4,096 tokens."""
from contextlib import AsyncExitStack

from bench import Row, in_turns
from spread import quantile, ratios, spread

TRIAL_SHARE = 3   # as many times fewer prompts choose the mode
GOALS = {512: 2.2, 4096: 3.0}


async def measure_length(bench, n_prompt, goal):
    async with AsyncExitStack() as stack:
        knap = await bench.knap(stack)
        trial = await bench.prompts.documents(knap, n_prompt, max(bench.options.n_prompts // TRIAL_SHARE, 1))
        prompts = await bench.prompts.documents(knap, n_prompt, bench.options.n_prompts)

        async def rate_of(server):
            return quantile([(await bench.ask(server, prompt)).decode_rate for prompt in trial], 0.5)
        mode, trial_rates = await bench.best_peer_mode(rate_of)
        peer = await bench.peer(stack, mode)
        pairs = [await in_turns(i, lambda: bench.ask(knap, prompt), lambda: bench.ask(peer, prompt))
                 for i, prompt in enumerate(prompts)]
    rows = []
    for what, rate in (("decoding", "decode_rate"), ("whole request", "stream_rate")):
        ours, theirs = ([getattr(answer, rate) for answer in side] for side in zip(*pairs))
        rows.append(Row("over-peer", f"one stream after {n_prompt} tokens over llama.cpp ({', '.join(mode)}), {what}",
                        spread(ratios(ours, theirs)), least=goal if rate == "decode_rate" else None,
                        details={"knap": ours, "llama.cpp": theirs, "trial": trial_rates}))
    return rows


async def measure(bench):
    return [row for n_prompt, goal in GOALS.items() for row in await measure_length(bench, n_prompt, goal)]
