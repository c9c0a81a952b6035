"""The baseline: one request at a time, in arrival order, reactive ones first."""

from collections import deque

from xpusim import Policy
from xpusim.helpers import form, next_piece, place


class MyPolicy(Policy):
    """Reactive before proactive, then first come, first served, on the fastest device."""

    def init(self):
        self.device = place(self.machine, "auto")
        self.waiting = {"reactive": deque(), "proactive": deque()}
        self.current = None

    def request_arrived(self, r):
        self.waiting[r.cls].append(r)

    def request_cancelled(self, r):
        if r is self.current:
            self.current = None
        elif r in self.waiting[r.cls]:  # else it left with a pass that ended at this instant
            self.waiting[r.cls].remove(r)

    def pass_done(self, p):
        if p.segments[0].request.left:  # its answer is complete
            self.current = None

    def schedule(self):
        for queue in self.waiting.values():
            if self.current is None and queue:
                self.current = queue.popleft()
        if self.current is not None:
            p = self.current.pass_ or form(self, [next_piece(self.current)])
            if p.state == "ready":
                self.launch(p, self.device)
