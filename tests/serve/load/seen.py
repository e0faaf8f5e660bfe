"""What all clients together have seen, for the sums at the end."""
import threading
from collections import Counter

# Ends as /metrics counts them, in vLLM's words: of native answers, which have llama.cpp's, and of calls of tools.
ENDS = {"eos": "stop", "word": "stop", "limit": "length", "tool_calls": "stop"}
UNSURE_WHEN_LEFT = (429,)   # a client that left may have been refused


class Seen:
    def __init__(self):
        self._lock = threading.Lock()
        self.refused = Counter()      # by status
        self.ended = Counter()        # answers by the reason of their end
        self.visits = Counter()       # by the name of the client's kind
        self.n_requests_answered = 0
        self.n_prompt = 0             # tokens
        self.n_cached = 0
        self.n_generated = 0
        self.n_left_requests = 0      # whose clients did not wait for the end
        self.n_left = 0               # answers of these
        self.n_late = 0               # requests that we were too slow to send
        self._unsure = Counter()      # refusals that nobody waited for

    def answer(self, told):
        with self._lock:
            self.n_requests_answered += 1
            self.n_prompt += told.n_prompt
            self.n_cached += told.n_cached
            self.n_generated += told.n_generated
            for choice in told.choices:
                end = choice.end.split(":")[0]
                self.ended[ENDS.get(end, end)] += 1

    def refusal(self, status):
        with self._lock:
            self.refused[status] += 1

    def left(self, n_answers):
        with self._lock:
            self.n_left_requests += 1
            self.n_left += n_answers

    def unsure(self, status):
        with self._lock:
            self._unsure[status] += 1

    def late(self):
        self.unsure(408)
        with self._lock:
            self.n_late += 1

    def unsure_of(self, status):
        return self._unsure[status] + (self.n_left_requests if status in UNSURE_WHEN_LEFT else 0)

    def visit(self, kind):
        with self._lock:
            self.visits[kind] += 1
