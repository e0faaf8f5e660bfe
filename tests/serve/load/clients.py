"""The kinds of clients. Each is a function that makes one visit; many threads call them until the load is over. A visit waits for
the answers that it may have, compares them with the right ones, and counts what it saw."""
import json

import answers
from answers import WrongAnswer
from pool import GREEDY, NATIVE, TEXT, said, varied
from served import Answer
from wire import Wire, chunked_bytes, events, head_bytes, json_headers, post_bytes

ENDLESS = said("Count to a thousand.", **GREEDY, ignore_eos=True, max_tokens=400, stream=True)
HEADER_S = 10   # that the server waits for headers, and for a first request
BODY_S = 30     # and for a body
KEEP_S = 60     # and for another request, or for a client that does not read


def take(load, wire, question, body, n_bytes=1 << 16, pause_s=0):
    """Reads the answer to a question and checks it. Returns its status."""
    response = wire.head()
    if response.status != 200:
        status = refused(load, Answer(response), {429})
        wire.note_end()
        return status
    if body.get("stream"):
        def read():
            for event in events(response, n_bytes):
                yield event
                if pause_s:
                    load.wait(pause_s)
        found = answers.streamed(question.path, read())
    else:
        found = answers.whole(question.path, json.loads(response.read()))
    wire.note_end()
    load.seen.answer(found)
    answers.compare(question.name, found, load.right[question.name])
    return 200


def refused(load, answer, expected, what="a good request"):
    """Checks a refusal. Returns its status."""
    load.seen.refusal(answer.status)
    if answer.status not in expected:
        raise WrongAnswer(f"{what}: expected status {expected}, found {answer.status}: {answer.body[:300]!r}")
    if answer.body and not answer.error["message"]:
        raise WrongAnswer(f"{what}: expected a reason, found {answer.body[:300]!r}")
    if answer.status == 429 and int(answer.headers["retry-after"]) < 0:
        raise WrongAnswer(f"{what}: expected Retry-After, found {answer.headers}")
    return answer.status


def chosen(load, rng):
    question = rng.choice(load.questions)
    return question, varied(question, load.strategies, rng)


def asks(load, rng):
    """Several requests on one connection, one after the other."""
    with Wire(load.port) as wire:
        for _ in range(rng.randint(1, 6)):
            question, body = chosen(load, rng)
            wire.send(post_bytes(question.path, body, load.key(rng)))
            if take(load, wire, question, body) == 429:
                load.wait(rng.uniform(0.1, 0.5))
            if load.is_over:
                return


def pipelines(load, rng):
    """Several requests at once; answers come in their order."""
    asked = [chosen(load, rng) for _ in range(rng.randint(2, 5))]
    with Wire(load.port) as wire:
        wire.send(b"".join(post_bytes(question.path, body, load.key(rng)) for question, body in asked))
        for question, body in asked:
            take(load, wire, question, body)


def sends_bytewise(load, rng):
    """A request whose body comes byte by byte, or in small chunks; after asking whether it may."""
    question, body = chosen(load, rng)
    how = rng.randrange(3)
    with Wire(load.port) as wire:
        if how == 0:
            wire.send(chunked_bytes(question.path, body, load.key(rng), [1, 7, 64, 3]))
        else:
            data = post_bytes(question.path, body, load.key(rng), **({"Expect": "100-continue"} if how == 2 else {}))
            end = data.index(b"\r\n\r\n") + 4
            wire.send(data[:end])
            for at in range(end, len(data)):
                wire.send(data[at:at + 1])
                if at % 64 == 0 and not load.is_over:
                    load.wait(0.005)
        take(load, wire, question, body)


def reads_slowly(load, rng):
    """An answer that is read a few bytes at a time."""
    question, body = chosen(load, rng)
    body |= {"stream": True}
    with Wire(load.port, receive_bytes=2048) as wire:
        wire.send(post_bytes(question.path, body, load.key(rng)))
        take(load, wire, question, body, n_bytes=rng.choice([16, 64, 256]), pause_s=0 if load.is_over else 0.002)


def stops_reading(load, rng):
    """An answer of which nothing more is read; the server ends it, or the client does after a while."""
    with Wire(load.port, receive_bytes=1024) as wire:
        wire.send(post_bytes("/v1/chat/completions", ENDLESS | {"logprobs": True, "top_logprobs": 20}, load.key(rng)))
        load.seen.left(1)
        load.wait(rng.uniform(5, KEEP_S + 10))


def leaves(load, rng):
    """Goes away: before the answer, in the middle of a stream, with and without a word."""
    question, body = chosen(load, rng)
    if rng.random() < 0.5:
        question, body = None, ENDLESS
    path = question.path if question else "/v1/chat/completions"
    wire = Wire(load.port)
    try:
        wire.send(post_bytes(path, body, load.key(rng)))
        load.seen.left(load.n_choices(body))
        if rng.random() < 0.7:
            load.wait(rng.uniform(0, 1))
        elif body.get("stream"):
            response = wire.head()
            if response.status == 200:
                n_events = rng.randint(0, 10)
                for n, _ in enumerate(events(response)):
                    if n >= n_events:
                        break
        if rng.random() < 0.3:
            wire.end_sending()
    finally:
        wire.close(resets=rng.random() < 0.3)


def stalls(load, rng):
    """Half a request and no more. The server says 408, unless the client is gone before."""
    data = post_bytes(TEXT, {"prompt": "A" * 200, "max_tokens": 1}, load.key(rng))
    in_body = rng.random() < 0.5
    end = data.index(b"\r\n\r\n") + 4
    cut = rng.randrange(end, len(data)) if in_body else rng.randrange(1, end)
    patience = rng.choice([1, 2, BODY_S + 30])
    with Wire(load.port) as wire:
        wire.send(data[:cut])
        if not load.wait_for(wire, patience):
            load.seen.unsure(408)
            return
        refused(load, wire.answer(), {408}, "half a request")


def lies(load, rng):
    """A wrong request; the refusal must be the documented one. Sometimes a right one follows on the same connection."""
    what, status, data = rng.choice(load.refusals)
    with Wire(load.port) as wire:
        wire.send(data)
        answer = wire.answer(data.split(b" ", 1)[0].decode("latin-1"))
        refused(load, answer, {status}, what)
        if answer.headers.get("connection") == "keep-alive":
            question, body = chosen(load, rng)
            wire.send(post_bytes(question.path, body, load.key(rng)))
            take(load, wire, question, body)


def promises_more(load, rng):
    """Announces a longer body than it sends, and ends: no answer, and no fault."""
    with Wire(load.port) as wire:
        wire.send(head_bytes("POST", TEXT, json_headers(load.key(rng), 1000)) + b'{"prompt":')
        wire.end_sending()
        if not wire.is_ended():
            raise WrongAnswer(f"half a body and its end: expected no answer, found {wire.answer().status}")


def opens_and_waits(load, rng):
    """Connections on which nothing is ever sent: the server closes them without a word."""
    wires = [Wire(load.port) for _ in range(20)]
    try:
        if rng.random() < 0.5:
            load.wait(rng.uniform(0, 2))
            return
        for wire in wires:
            if load.wait_for(wire, HEADER_S + 50) and not wire.is_ended():
                raise WrongAnswer(f"an idle connection: expected its end, found {wire.answer().status}")
    finally:
        for wire in wires:
            wire.close()


def keeps_open(load, rng):
    """A connection that is kept after an answer."""
    with Wire(load.port) as wire:
        wire.send(head_bytes("GET", "/health", {"Host": "localhost"}))
        if wire.answer("GET").status != 200:
            raise WrongAnswer("GET /health: expected status 200")
        if load.wait_for(wire, rng.choice([1, KEEP_S + 60])) and not wire.is_ended():
            raise WrongAnswer(f"a kept connection: expected its end, found {wire.answer('GET').status}")


def looks(load, rng):
    """What is not answered by the model: states, the page, tokens."""
    with Wire(load.port) as wire:
        for path in ("/health", "/metrics", "/slots", "/props", "/v1/models", "/openapi.json", "/"):
            method = rng.choice(["GET", "GET", "HEAD"])
            wire.send(head_bytes(method, path, json_headers(load.key(rng))))
            answer = wire.answer(method)
            if answer.status != 200 or bool(answer.body) != (method == "GET"):
                raise WrongAnswer(f"{method} {path}: expected an answer with status 200, found {answer.status}")
        text = rng.choice(["one two", "añ—漢字😀", " ", "<|im_start|>"])
        wire.send(post_bytes("/tokenize", {"content": text}, load.key(rng)))
        tokens = wire.answer().json()["tokens"]
        wire.send(post_bytes("/detokenize", {"tokens": tokens}, load.key(rng)))
        found = wire.answer().json()["content"]
        if found.strip() != text.strip():
            raise WrongAnswer(f"/detokenize: expected {text!r}, found {found!r}")


def sends_much(load, rng):
    """A body of some megabytes whose bulk has no meaning."""
    question = rng.choice([one for one in load.questions if one.path != NATIVE])
    body = question.body | {"metadata": rng.choice(["x" * 4_000_000, [1] * 500_000])}
    with Wire(load.port) as wire:
        wire.send(post_bytes(question.path, body, load.key(rng)))
        take(load, wire, question, body)


# How many threads each kind has, and how long one rests between two visits, in seconds.
KINDS = {asks: (10, 0), pipelines: (2, 0), sends_bytewise: (2, 0.1), reads_slowly: (2, 0), stops_reading: (1, 0.1),
         leaves: (3, 0.05), stalls: (2, 0.1), lies: (2, 0.03), promises_more: (1, 0.5), opens_and_waits: (1, 0.5),
         keeps_open: (1, 0.5), looks: (1, 0.2), sends_much: (1, 2)}
