"""Output by a JSON schema, over the same request without one.

The two texts differ, and so does how much of them can be copied: JSON repeats its keys, and a small model that must write
on after the end of its answer repeats itself. So a free answer may end where the model ends it; one that must have as many
tokens is told beside it. Plain decoding copies nothing, so there only the masks count."""
from contextlib import AsyncExitStack

from bench import Row, in_turns
from spread import quantile, ratios, spread

TOPICS = ("the crew of a ship", "the players of a small orchestra", "the teachers of a village school",
          "the staff of a bakery", "the guests of an inn", "the members of an expedition", "the workers of a farm",
          "the volunteers of a library")
PERSON = {"type": "object", "additionalProperties": False, "required": ["name", "age", "role", "languages"],
          "properties": {"name": {"type": "string", "maxLength": 40}, "age": {"type": "integer"},
                         "role": {"type": "string", "maxLength": 40},
                         "languages": {"type": "array", "minItems": 1, "maxItems": 3,
                                       "items": {"type": "string", "enum": ["English", "French", "Danish"]}}}}
SCHEMA = {"type": "object", "additionalProperties": False, "required": ["people"],
          "properties": {"people": {"type": "array", "minItems": 6, "maxItems": 12, "items": PERSON}}}
N_TURNS = 3   # of each pair; their medians are compared
PLAIN = {"knap": {"strategy": "autoregressive"}}
FORMAT = {"type": "json_schema", "json_schema": {"name": "people", "schema": SCHEMA, "strict": True}}


async def measure(bench):
    rates = {name: {"schema": [], "free": []} for name in ("as asked", "as long", "plain")}
    async with AsyncExitStack() as stack:
        # Without a memory of answers: each answer is asked for several times.
        server = await bench.knap(stack, extra=("--answer-memory", "0"))
        for i in range(bench.options.n_prompts):
            prompt = f"Invent {TOPICS[i % len(TOPICS)]}, number {i}. Answer in JSON."
            # Finds the length of the answer, and compiles the grammar.
            length = (await bench.ask(server, prompt, response_format=FORMAT, ignore_eos=None)).n_tokens

            async def compare(name, free, **fields):
                pairs = [await in_turns(
                    turn, lambda: bench.ask(server, prompt, response_format=FORMAT, ignore_eos=None, **fields),
                    lambda: bench.ask(server, prompt, length, **free, **fields)) for turn in range(N_TURNS)]
                for side, answers in zip(("schema", "free"), zip(*pairs)):
                    rates[name][side].append(quantile([answer.decode_rate for answer in answers], 0.5))
            await compare("as asked", {"ignore_eos": None})
            await compare("as long", {})
            await compare("plain", {}, **PLAIN)
    found = {name: ratios(of["schema"], of["free"]) for name, of in rates.items()}
    return [Row("schema", "JSON schema over the same request without one", spread(found["as asked"]), least=1.0,
                details=rates["as asked"]),
            Row("schema", "the same, lowest ratio", spread([min(found["as asked"])]), least=0.9),
            Row("schema", "the same, where the free answer must go on for as many tokens", spread(found["as long"]),
                details=rates["as long"]),
            Row("schema", "the same with plain decoding", spread(found["plain"]), details=rates["plain"])]
