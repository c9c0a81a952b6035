"""fcfs: the twin of policies/fcfs.c. Read it to learn the contract."""

from collections import deque

from xpusim import Policy
from xpusim.helpers import device_param, form, next_piece, place


class Fcfs(Policy):
    """One request at a time, in arrival order, on one device."""

    name = "fcfs-py"
    params = (device_param(),)
    once = sleeps = steady = True

    def init(self):
        self.device = place(self.machine, self.param["device"])
        self.waiting = deque()
        self.current = None

    def request_arrived(self, r):
        self.waiting.append(r)

    def request_cancelled(self, r):
        if r in self.waiting:  # else it left with a pass that ended at this instant
            self.waiting.remove(r)

    def pass_done(self, p):
        if p.segments[0].request.left:
            self.current = None

    def refused(self, what):
        pass  # "no_memory", say: the request is still self.current, so schedule forms it again

    def schedule(self):
        if self.current is None and self.waiting:
            self.current = self.waiting.popleft()
        if self.current is not None:
            p = self.current.pass_ or form(self, [next_piece(self.current)])
            if p.state == "ready":  # also after a launch that was refused
                self.launch(p, self.device)
