"""sarathi-hetero by clauses E.2, policies/README.md and the head of its file, with plain lists (judges.py)."""
from judges import Param
from judges_vllm import Sarathi


class SarathiHetero(Sarathi):
    """A step of Sarathi in two passes at once: decodes on the iGPU, chunks on the NPU, with attention and head between the decodes."""
    name = "sarathi-hetero-judge"
    needs = ("spans", "row_split", "kv_move", "npu", "igpu")
    params = Sarathi.params + (Param("parallel", True, ""),)

    def init(self):
        super().init()
        self.npu, self.igpu = (next(d.index for d in self.machine.devices if d.kind == k) for k in ("npu", "igpu"))
        self.passes, self.on = [], {}  # of the step; the launch of each
        self.ready = {}

    def launch_done(self, x):
        self.on.pop(x.pass_.id)
        self.ready[x.pass_.id] = self.now_ns

    def pass_done(self, p):
        self.passes.remove(p)
        self.runs = [r for r in self.runs if not r.left]

    def other_model(self, r):
        """Each pass has requests of one model."""
        return any(s.request.model != r.model for s in self.batch if (s.role == "decode") == (r.state == "decode"))

    def forms(self):
        """Both passes, or none."""
        made = []
        for role in ("decode", "prefill"):
            batch = [s for s in self.batch if s.role == role]
            if batch:
                made.append(self.form(batch, len(batch) == 1 and role == "decode"))
                if not self.sync():
                    for p in made[:-1]:
                        self.cancel(p)
                        self.sync()
                    return False
        self.passes = made
        self.ready = {p.id: self.now_ns for p in made}
        return True

    def begin(self):
        while not self.passes and (self.runs or self.waits):
            self.batch, self.admitted, self.lost = [], [], False
            self.compose()
            while self.batch and not self.forms():
                if self.admitted:
                    r = self.admitted.pop()
                    self.runs.remove(r)
                    self.batch = [s for s in self.batch if s.request is not r]
                    self.waits.insert(0, r)
                else:
                    self.lose(self.last())
            if not self.lost:
                return

    def where(self, p):
        if not p.shape.prefill_rows:
            return self.igpu
        static = self.machine.devices[self.npu].static_attention
        return self.igpu if p.op_kind() == "head" or p.op_kind() == "mha" and static else self.npu

    def schedule(self):
        self.begin()
        can = [p for p in self.passes if p.id not in self.on and p.state == "ready" and p.op < p.n_ops]
        if not self.param["parallel"]:
            can = [p for p in can if p is self.passes[0]]
        for p in can:
            if self.where(p) == self.npu:
                self.on[p.id] = self.launch(p, self.npu, n_ops=1, yield_="pass")
        can = sorted((p for p in can if p.id not in self.on), key=lambda p: (self.ready[p.id], not p.shape.prefill_rows))
        if can and self.free_slots[self.igpu]:
            p = can.pop(0)
            self.on[p.id] = self.launch(p, self.igpu, n_ops=int(self.param["parallel"] and len(self.passes) > 1 or p.shape.prefill_rows > 0), yield_="pass")
