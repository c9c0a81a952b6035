"""npu-serial: the twin of policies/npu-serial.c, over two devices."""

from collections import deque

from xpusim import Param, Policy
from xpusim.helpers import Hetero, form, next_piece


class NpuSerial(Policy):
    """One request at a time: prefill on the NPU, attention and decode on the iGPU."""

    name = "npu-serial-py"
    needs = ("npu", "igpu", "spans", "row_split")
    params = (Param("margin", "npu", "where the prompt's last, partial chunk runs", choices=("npu", "igpu")),)
    once = True

    def init(self):
        npu, self.igpu = self.machine.find("npu"), self.machine.find("igpu").index
        self.chunk = npu.chunk_rows
        if self.chunk == 0:
            raise ValueError("the NPU has no static chunk")
        self.prefill = Hetero(self, npu.index, self.igpu)
        self.waiting = deque()
        self.current = None

    def request_arrived(self, r):
        self.waiting.append(r)

    def request_cancelled(self, r):
        if r in self.waiting:  # else it left with a pass that ended at this instant
            self.waiting.remove(r)

    def launch_done(self, launch):
        self.prefill.ended(launch)

    def pass_done(self, p):
        self.prefill.clear()
        if p.segments[0].request.left:
            self.current = None

    def refused(self, what):
        self.prefill.clear()

    def schedule(self):
        if self.current is None:
            if not self.waiting:
                return
            self.current = self.waiting.popleft()
        r = self.current
        if r.pass_ is None:
            p = form(self, [next_piece(r)])
            if r.state == "decode":
                self.launch(p, self.igpu)
                return
            self.prefill.begin(p)
        if self.prefill.at_boundary():
            self.prefill.plan(self.chunk, self.param["margin"] == "npu")
        self.prefill.launch("npu")
        self.prefill.launch("igpu")
