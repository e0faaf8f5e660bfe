"""A server under load: what it must answer, the clients that ask, and what they found."""
import http.client
import json
import random
import threading
import time

import answers
import clients
import pool
from answers import WrongAnswer
from pool import GREEDY, NATIVE, Question
from refusals import refusals
from seen import Seen
from served import Answer
from watch import PROBE
from wire import Late, Wire, events, post_bytes

MOST_FAULTS = 100   # then there is no point in going on
KEPT_FAULTS = 20    # in the report
ENDS_S = clients.KEEP_S + 300   # for the visits that are under way at the end


class Load:
    def __init__(self, port, keys):
        self.port = port
        self.keys = keys
        self.seen = Seen()
        self.questions = pool.questions()
        self.refusals = refusals(keys[0])
        self.right = {}        # by the name of the question
        self.strategies = []   # that this model can use
        self.faults = []
        self.n_faults = 0
        self._over = threading.Event()
        self._lock = threading.Lock()
        self._threads = []

    @property
    def is_over(self):
        return self._over.is_set()

    def end(self):
        self._over.set()

    def wait(self, seconds):
        """Returns earlier when the load is over."""
        return self._over.wait(seconds)

    def wait_for(self, wire, seconds):
        """Whether something arrives on a connection within that time, before the load is over."""
        end = time.monotonic() + seconds
        while not self.is_over and time.monotonic() < end:
            if wire.has_answer(0.2):
                return True
        return wire.has_answer(0)

    def key(self, rng):
        return rng.choice(self.keys)

    @staticmethod
    def n_choices(body):
        return body.get("n", 1) * (len(body["prompt"]) if isinstance(body.get("prompt"), list)
                                   and isinstance(body["prompt"][0], str) else 1)

    def fault(self, who, error):
        with self._lock:
            self.n_faults += 1
            if len(self.faults) < KEPT_FAULTS:
                self.faults.append({"client": who, "fault": f"{type(error).__name__}: {error}"[:2000]})
        if self.n_faults >= MOST_FAULTS:
            self.end()

    def ask(self, question, body):
        """The answer to a request that nothing else disturbs; an Answer if it is refused."""
        with Wire(self.port) as wire:
            wire.send(post_bytes(question.path, body, self.keys[0]))
            got = Answer(wire.head())
        if got.status != 200:
            self.seen.refusal(got.status)
            return got
        found = answers.whole(question.path, got.json())
        self.seen.answer(found)
        return found

    def learn(self):
        """Asks every question alone. Raises WrongAnswer if one cannot be answered."""
        probe = Question("probe", NATIVE, PROBE)
        for question in [*self.questions, probe]:
            found = self.ask(question, pool.alone(question))
            if isinstance(found, Answer):
                raise WrongAnswer(f"{question.name}: expected an answer, found status {found.status}: {found.body[:300]!r}")
            self.right[question.name] = found
        with Wire(self.port) as wire:
            wire.send(post_bytes("/completion", PROBE, self.keys[0]))
            self.check_probe(wire.answer())

    def learn_strategies(self, names):
        """Those that need no further file or training of the model."""
        hello = pool.said("Hello.", **GREEDY, max_tokens=1)
        for name in names:
            if not isinstance(self.ask(Question(name, pool.CHAT, hello), hello | {"knap": {"strategy": name}}), Answer):
                self.strategies.append(name)

    def check_probe(self, answer):
        found = answers.whole(NATIVE, json.loads(answer.body))
        self.seen.answer(found)
        answers.compare("probe", found, self.right["probe"])

    def ask_again(self):
        """Every question once more, alone. Returns how many are answered as before."""
        n_right = 0
        for question in self.questions:
            found = self.ask(question, question.body)
            n_right += not isinstance(found, Answer) and found.choices == self.right[question.name].choices
        return n_right

    def start(self, seed):
        for kind, (n_threads, pause_s) in clients.KINDS.items():
            for i in range(n_threads):
                rng = random.Random(f"{seed} {kind.__name__} {i}")
                thread = threading.Thread(target=self._visit, args=(kind, pause_s, rng), name=kind.__name__, daemon=True)
                self._threads.append(thread)
                thread.start()

    def _visit(self, kind, pause_s, rng):
        while not self.is_over:
            try:
                kind(self, rng)
                self.seen.visit(kind.__name__)
            except Late:
                self.seen.late()
            except (WrongAnswer, OSError, http.client.HTTPException, LookupError, TypeError, ValueError) as error:
                self.fault(kind.__name__, error)
                self.wait(0.5)
            self.wait(pause_s)

    def join(self):
        """Waits for the visits under way; they end soon after the load."""
        end = time.monotonic() + ENDS_S
        for thread in self._threads:
            thread.join(max(0, end - time.monotonic()))
            if thread.is_alive():
                self.fault(thread.name, TimeoutError("the visit did not end"))

    def streams(self, n):
        """Answers under way: a function for each that reads the rest, and raises if it is not right."""
        question = next(one for one in self.questions if one.body.get("ignore_eos"))

        def begun():
            wire = Wire(self.port)
            wire.send(post_bytes(question.path, question.body | {"stream": True}, self.keys[0]))
            rest = events(wire.head())
            first = next(rest)

            def read():
                with wire:
                    answers.compare(question.name, answers.streamed(question.path, [first, *rest]), self.right[question.name])
            return read
        return [begun() for _ in range(n)]
