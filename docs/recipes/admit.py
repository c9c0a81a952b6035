"""admit: a request begins when all that it may need fits next to all that the others may still need.

So form is never refused for memory, and nobody has to give KV back. The price is memory that stays unused: answers are
mostly shorter than max_output_tokens. evict.c is the other way."""

from collections import deque

from xpusim import Param, Policy
from xpusim.helpers import device_param, form, next_piece, place


class Admit(Policy):
    """Users first; the next prompt in chunks, then a token for everybody who has begun."""

    once = True
    params = (device_param(),
              Param("chunk", 512, "prompt tokens of a pass", 1, 1000000),
              Param("max_batch", 16, "sequences that decode together", 1, 4096))

    def init(self):
        self.device = place(self.machine, self.param["device"])
        self.start()

    def start(self):
        self.waiting = {"reactive": deque(), "proactive": deque()}
        self.begun = []  # their memory is kept for them; the oldest first
        self.running = None

    def request_arrived(self, r):
        self.waiting[r.cls].append(r)

    def request_cancelled(self, r):
        for group in (*self.waiting.values(), self.begun):
            if r in group:
                group.remove(r)

    def pass_done(self, p):
        self.begun = [r for r in self.begun if not r.left]
        if p is self.running:
            self.running = None

    def refused(self, what):  # other programs took memory (`--machine`): it is tried again after the next event
        if self.running is not None and self.running.state == "refused":
            self.running = None

    def may_need(self, r):
        """Tokens of KV that it may still take. A prefix that it has found counts as free until it begins."""
        has = r.kv_tokens if r in self.begun else 0
        return r.input_tokens + r.max_output_tokens - has + r.kv_state_tokens + self.kv_block_tokens

    def admit(self):
        """In order of arrival, so that small ones do not overtake a large one for ever."""
        kept = sum(map(self.may_need, self.begun))
        for group in self.waiting.values():
            while group:
                needed = self.may_need(group[0])
                if self.begun and kept + needed > self.kv_free_tokens:
                    return
                kept += needed
                self.begun.append(group.popleft())

    def ready(self, state):
        """Those who have begun and are in no pass: users first, the oldest first, of one model."""
        rs = sorted((r for r in self.begun if r.state == state and not r.pass_), key=lambda r: r.cls != "reactive")
        return [r for r in rs if r.model == rs[0].model]

    def schedule(self):
        if self.running is not None:
            return  # asked after every event, so return soon
        self.admit()
        prompts = self.ready("queued")
        batch = prompts[:1] or self.ready("decode")[:self.param["max_batch"]]
        if batch:
            self.running = form(self, [next_piece(r, self.param["chunk"]) for r in batch])
            self.launch(self.running, self.device)
