"""What the questions share: options, servers, and measurements side by side."""
import subprocess
import sys
from contextlib import AsyncExitStack
from dataclasses import dataclass, field

from client import STREAMS, chat_body
from prompts import Prompts
from servers import Server, knap_command, peer_command
from spread import Spread

N_CTX = 8192
WARM_UP = "Name three rivers of Europe."

# Ways of llama.cpp's server to decode without a second model. On CPUs its attention is often faster without "flash
# attention", which it uses if not told otherwise.
PEER_ATTENTIONS = {"flash attention": ["-fa", "on"], "no flash attention": ["-fa", "off"]}
PEER_DRAFTS = {
    "no drafts": [],
    "ngram-simple": ["--spec-type", "ngram-simple"],
    "ngram-simple, 4 to 8": ["--spec-type", "ngram-simple", "--spec-ngram-simple-size-n", "4",
                             "--spec-ngram-simple-size-m", "8"],
    "ngram-map-k": ["--spec-type", "ngram-map-k"],
    "ngram-map-k4v": ["--spec-type", "ngram-map-k4v"],
    "ngram-mod": ["--spec-type", "ngram-mod"],
    "ngram-cache": ["--spec-type", "ngram-cache"],
}


@dataclass
class Row:
    """A line of the report."""
    question: str
    what: str
    spread: Spread
    unit: str = "x"               # x: a ratio
    least: float | None = None    # the goal, where there is one
    most: float | None = None
    details: dict = field(default_factory=dict)   # single values, for the JSON file

    @property
    def is_reached(self):
        return ((self.least is None or self.spread.median >= self.least) and
                (self.most is None or self.spread.median <= self.most))


@dataclass
class Options:
    knap: str
    peer: str | None
    model: str
    threads: int
    data: str | None
    client: str
    n_prompts: int      # of each question
    n_tokens: int       # of each answer
    n_requests: int     # of the question about memory
    n_idle: int         # connections
    health_s: float     # how long to ask for /health
    n_edits: int = 10   # turns of `agent`
    n_forms: int = 20   # requests of `agent`


class Bench:
    def __init__(self, options):
        self.options = options
        self.prompts = Prompts(options.data)
        self._stream = STREAMS[options.client]

    def note(self, text):
        print(f"bench-serve: {text}", file=sys.stderr, flush=True)

    async def ask(self, server, content, n_tokens=None, stream=None, **fields):
        """Streams an answer, which has the wanted length unless the server ended it for another reason. `stream` is who
        reads it, if not the client of all questions."""
        n_tokens = n_tokens or self.options.n_tokens
        answer = await (stream or self._stream)(server, chat_body(content, n_tokens, **fields))
        if fields.get("ignore_eos", True) and answer.n_tokens != n_tokens:
            raise RuntimeError(f"{server.name}: expected {n_tokens} tokens, found {answer.n_tokens}")
        return answer

    async def knap(self, stack, n_parallel=1, n_ctx=N_CTX, extra=()):
        """A warm `knap serve` that lives as long as the stack."""
        server = Server("knap", knap_command(self.options, n_parallel, n_ctx, extra))
        return await self._warm(await stack.enter_async_context(server))

    async def peer(self, stack, mode=("no flash attention", "no drafts"), n_parallel=1, n_ctx=N_CTX):
        attention, drafts = mode
        command = peer_command(self.options, n_parallel, n_ctx, PEER_ATTENTIONS[attention] + PEER_DRAFTS[drafts])
        return await self._warm(await stack.enter_async_context(Server(f"llama.cpp ({', '.join(mode)})", command)))

    async def _warm(self, server):
        await self.ask(server, WARM_UP, 8)
        return server

    async def best_peer_mode(self, rate_of, n_parallel=1, n_ctx=N_CTX):
        """The mode of llama.cpp's server with the highest rate, and all rates. `rate_of(server)` measures one. The better
        attention is chosen without drafts, then the best drafts with it."""
        rates = {}

        async def try_mode(mode):
            async with AsyncExitStack() as stack:
                rates[mode] = await rate_of(await self.peer(stack, mode, n_parallel, n_ctx))
            self.note(f"llama.cpp, {', '.join(mode)}: {rates[mode]:.1f} tokens/s")
        for attention in PEER_ATTENTIONS:
            await try_mode((attention, "no drafts"))
        attention, _ = max(rates, key=rates.get)
        for drafts in PEER_DRAFTS:
            if (attention, drafts) not in rates:
                await try_mode((attention, drafts))
        return max(rates, key=rates.get), {", ".join(mode): rate for mode, rate in rates.items()}

    def run(self, *arguments):
        """The output of the program `knap`."""
        return subprocess.run([self.options.knap, *map(str, arguments)], check=True, stdout=subprocess.PIPE,
                              stderr=subprocess.DEVNULL, text=True).stdout


async def in_turns(index, first, second):
    """Runs two measurements, in another order each time, and returns their results in the given order."""
    if index % 2 == 0:
        ours = await first()
        return ours, await second()
    theirs = await second()
    return await first(), theirs
