"""The default model on the iGPU, all others on the NPU: docs/concepts/models.md."""
from collections import deque
from typing import Deque, Dict, List

from xpusim import Pass, Policy, Request
from xpusim.helpers import form, next_piece, place


class OthersOnNpu(Policy):
    """The iGPU serves one model, the partitions of the NPU the others; on each, one request after the other."""

    once = sleeps = steady = True
    needs = ("npu", "igpu")

    def init(self) -> None:
        npu = place(self.machine, "npu")
        self.queues: List[Deque[Request]] = [deque(), deque()]  # of the default model, and of others
        self.serves: Dict[int, Request] = {}  # by device
        self.queue_of = {place(self.machine, "igpu"): 0}
        self.queue_of.update((d.index, 1) for d in self.machine.devices if d.kind == self.machine.devices[npu].kind)

    def request_arrived(self, r: Request) -> None:
        self.queues[r.model > 0].append(r)

    def request_cancelled(self, r: Request) -> None:
        if r in self.queues[r.model > 0]:
            self.queues[r.model > 0].remove(r)
        self.left(r)

    def left(self, r: Request) -> None:
        self.serves = {d: x for d, x in self.serves.items() if x is not r}

    def pass_done(self, p: Pass) -> None:
        r = p.segments[0].request
        if r.left:
            self.left(r)

    def schedule(self) -> None:
        for device, q in self.queue_of.items():
            if device not in self.serves and self.queues[q]:
                self.serves[device] = self.queues[q].popleft()
            if device in self.serves:
                r = self.serves[device]
                p = r.pass_ or form(self, [next_piece(r)])
                if p.state == "ready":
                    self.launch(p, device)
