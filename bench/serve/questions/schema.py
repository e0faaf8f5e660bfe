"""Output by a JSON schema, over an answer of as many tokens to the same request without one.

The two texts differ, and so does how much of them can be copied: a small model's prose soon repeats itself, and JSON
repeats its keys. Plain decoding copies nothing, so there only the masks count."""
from contextlib import AsyncExitStack

from bench import Row, in_turns
from spread import ratios, spread

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
PLAIN = {"knap": {"strategy": "autoregressive"}}
FORMAT = {"type": "json_schema", "json_schema": {"name": "people", "schema": SCHEMA, "strict": True}}


async def measure(bench):
    with_schema, without, plain_with, plain_without = [], [], [], []
    async with AsyncExitStack() as stack:
        # Without a memory of answers: each answer is asked for twice.
        server = await bench.knap(stack, extra=("--answer-memory", "0"))
        for i in range(bench.options.n_prompts):
            prompt = f"Invent {TOPICS[i % len(TOPICS)]}, number {i}. Answer in JSON."
            # Finds the length of the answer, and compiles the grammar.
            length = (await bench.ask(server, prompt, response_format=FORMAT, ignore_eos=None)).n_tokens
            ours, theirs = await in_turns(
                i, lambda: bench.ask(server, prompt, response_format=FORMAT, ignore_eos=None),
                lambda: bench.ask(server, prompt, length))
            with_schema.append(ours.decode_rate)
            without.append(theirs.decode_rate)
            ours, theirs = await in_turns(
                i, lambda: bench.ask(server, prompt, response_format=FORMAT, ignore_eos=None, **PLAIN),
                lambda: bench.ask(server, prompt, length, **PLAIN))
            plain_with.append(ours.decode_rate)
            plain_without.append(theirs.decode_rate)
    found = spread(ratios(with_schema, without))
    worst = min(ratios(with_schema, without))
    details = {"schema": with_schema, "free": without}
    return [Row("schema", "JSON schema over the same request without one", found, least=1.0, details=details),
            Row("schema", "the same, lowest ratio", spread([worst]), least=0.9),
            Row("schema", "the same with plain decoding", spread(ratios(plain_with, plain_without)),
                details={"schema": plain_with, "free": plain_without})]
