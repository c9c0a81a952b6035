"""npu_prefill: prompts on the NPU, tokens on the iGPU.

An NPU with compiled attention (`static_attention`) cannot run a whole prompt, and no decode. So the prompt runs op by op:
QKV and FFN on the NPU, attention and head on the iGPU. `Hetero` keeps the books of that:

    begin(p)         the pass of a prompt that was formed
    at_boundary()    its next op has no plan, and nothing of it is on a device
    plan(chunk, ..)  how many rows of that op each device gets
    launch(kind)     launches the share of one device, where that device is free
    ended(launch)    from launch_done
    clear()          from pass_done

Memory is kept as in admit.py, which must lie next to this file."""

from admit import Admit
from xpusim.helpers import Hetero, form, next_piece


class NpuPrefill(Admit):
    """One prompt at a time over NPU and iGPU, users first; next to it a token for everybody on the iGPU."""

    needs = ("npu", "igpu", "spans", "row_split")
    params = Admit.params[2:]

    def init(self):
        npu, self.device = self.machine.find("npu"), self.machine.find("igpu").index
        if npu.chunk_rows == 0:
            raise ValueError("the NPU has no static chunk")
        self.chunk = npu.chunk_rows
        self.prefill = Hetero(self, npu.index, self.device)
        self.start()

    def launch_done(self, launch):
        self.prefill.ended(launch)

    def pass_done(self, p):
        super().pass_done(p)
        if p is self.prefill.pass_:
            self.prefill.clear()

    def refused(self, what):
        super().refused(what)
        p = self.prefill.pass_
        self.prefill.clear()
        if p is not None and p.state in ("ready", "running"):  # only a launch was refused: plan it again
            self.prefill.begin(p)

    def schedule(self):
        if self.prefill.pass_ is None or self.running is None:
            self.admit()
        if self.prefill.pass_ is None:
            prompts = self.ready("queued")
            if prompts:
                self.prefill.begin(form(self, [next_piece(prompts[0])]))
        if self.prefill.at_boundary():
            self.prefill.plan(self.chunk, margin_on_npu=True)
        self.prefill.launch("npu")
        self.prefill.launch("igpu")
        if self.running is None and self.free_slots[self.device] > 0:
            batch = self.ready("decode")[:self.param["max_batch"]]
            if batch:
                self.running = form(self, [next_piece(r) for r in batch])
                self.launch(self.running, self.device)
