"""One stream through the server over `knap run`: what the server costs. The stream is read by curl: a client in Python
would take a share of the cores that compute, and be counted as the server's. The server computes every prompt anew and
remembers no answers, as a new process does, so that every prompt can be asked several times."""
import json
import tempfile
from contextlib import AsyncExitStack

from bench import Row, in_turns
from client import curl_stream
from spread import ratios, spread

N_PROMPT = 512
N_TURNS = 3


def run_once(bench, prompt):
    options = bench.options
    with tempfile.NamedTemporaryFile("w", suffix=".txt", encoding="utf-8") as file:
        file.write(prompt)
        file.flush()
        return json.loads(bench.run("run", "-m", options.model, "-t", options.threads, "-f", file.name, "--json",
                                    "--ignore-eos", "-n", options.n_tokens))


async def measure(bench):
    pairs = []
    async with AsyncExitStack() as stack:
        server = await bench.knap(stack, extra=("--answer-memory", "0"))
        prompts = await bench.prompts.documents(server, N_PROMPT, bench.options.n_prompts)
        for i, prompt in enumerate(N_TURNS * prompts):
            async def run():
                return run_once(bench, prompt)
            pairs.append(await in_turns(
                i, lambda: bench.ask(server, prompt, stream=curl_stream, cache_prompt=False), run))
    streams = [answer.stream_rate for answer, _ in pairs]
    runs = [1000 * run["n_generated"] / (run["timings"]["prefill_ms"] + run["timings"]["decode_ms"]) for _, run in pairs]
    decodes = [answer.decode_rate for answer, _ in pairs]
    run_decodes = [run["timings"]["tokens_per_second"] for _, run in pairs]
    n_same = sum(answer.text == run["text"] for answer, run in pairs)
    return [Row("over-run", "one stream over `knap run`, whole request", spread(ratios(streams, runs)), least=0.98,
                details={"server": streams, "run": runs, "n_same_text": n_same}),
            Row("over-run", "the same, decoding alone", spread(ratios(decodes, run_decodes)), least=0.98,
                details={"server": decodes, "run": run_decodes})]
