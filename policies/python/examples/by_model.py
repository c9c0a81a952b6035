"""The default model on the iGPU, all others on the NPU: docs/concepts/models.md."""
from collections import deque
from typing import Deque, Dict

from xpusim import Pass, Policy, Request
from xpusim.helpers import form, next_piece, place


class ByModel(Policy):
    """A device for each model; on each, one request after the other."""

    needs = ("npu", "igpu")

    def init(self) -> None:
        self.queues: Dict[int, Deque[Request]] = {place(self.machine, d): deque() for d in ("igpu", "npu")}

    def queue_of(self, r: Request) -> Deque[Request]:
        return list(self.queues.values())[r.model > 0]

    def request_arrived(self, r: Request) -> None:
        self.queue_of(r).append(r)

    def request_cancelled(self, r: Request) -> None:
        self.queue_of(r).remove(r)

    def pass_done(self, p: Pass) -> None:
        r = p.segments[0].request
        if r.left:
            self.queue_of(r).remove(r)

    def schedule(self) -> None:
        for device, q in self.queues.items():
            if q:
                p = q[0].pass_ or form(self, [next_piece(q[0])])
                if p.state == "ready":
                    self.launch(p, device)
