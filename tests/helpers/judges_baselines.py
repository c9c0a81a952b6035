"""Baselines of the papers, by clauses C.3 and C.4, policies/README.md and heads of the files (judges.py)."""
from judges import DEVICE, Param, Plain, Queues


class RecomputePreempt(Queues):
    """One class at a time, in order of arrival; what a reactive request finds of proactive work starts over."""
    name = "recompute-judge"
    params = (DEVICE, Param("kill", "kernel", "", choices=("kernel", "immediate", "never")),
              Param("keep_context", False, ""), Param("max_batch", 1, "", 1, 1024))

    def init(self):
        super().init()
        self.killed = False

    def launch_done(self, x):
        self.on = None
        self.killed = x.outcome != "done"

    def refused(self, what):
        pass

    def starts_over(self, r):
        self.runs.remove(r)
        if r.kv_tokens:
            self.kv(r, "nowhere")
            self.sync()
        self.waits.append(r)

    def reactive(self, rs):
        return any(r.cls == "reactive" for r in rs)

    def schedule(self):
        urgent = self.reactive(self.waits)
        if self.on is not None:
            if urgent and self.param["kill"] != "never" and not self.asked and not self.reactive(self.runs):
                now = self.param["kill"] == "immediate"
                self.preempt(self.on, now=now, discard=now)
                self.asked = True
            return
        if self.run is not None and self.run.state == "ready":
            self.cancel(self.run)
            self.sync()
            self.run = None
        if self.run is not None:
            return
        if urgent and self.param["kill"] != "never":
            for r in [r for r in self.runs if r.cls == "proactive"]:
                if self.param["keep_context"]:
                    self.runs.remove(r)
                    self.waits.append(r)
                else:
                    self.starts_over(r)
        age = lambda r: (r.arrival_ns, r.id)
        full = False
        while self.run is None and (self.runs or self.waits):
            cls = self.runs[0].cls if self.runs else "reactive" if urgent else "proactive"
            most = 0 if cls == "proactive" and self.reactive(self.waits) else 1 if full else self.param["max_batch"]
            for r in sorted((r for r in self.waits if r.cls == cls), key=age):
                if len(self.runs) >= most or self.runs and self.runs[-1].state == "queued" or not self.fits(r):
                    break
                self.waits.remove(r)
                self.runs.append(r)
            batch = [r for r in self.runs if r.state == "queued"][:1] or [r for r in self.runs if r.model == self.runs[0].model]
            self.run = self.form([self.piece(r, 1 << 30) for r in batch], len(batch) == 1 and batch[0].state == "decode")
            if not self.sync():
                self.run, full = None, True
                if len(self.runs) > 1:
                    self.starts_over(self.runs[-1])
                else:
                    self.lose(max((r for r in self.waits if r.kv_tokens), key=lambda r: (r.cls == "proactive", age(r))))
        if self.run is not None:
            self.on = self.launch(self.run, self.device, yield_="kernel")
            self.asked = False

    def fits(self, r):
        """The prompt, and 64 tokens for each who is then in progress."""
        need = r.prefill_left + r.kv_state_tokens + (self.kv_cached_tokens([r])[0] if self.is_cached(r) else 0)
        return not self.runs or need + 64 * (len(self.runs) + 1) <= self.kv_free_tokens


class NpuSerial(Plain):
    """One request from start to end: an operator of a prompt's tokens on the NPU, attention, head and decodes on the iGPU."""
    name = "npu-serial-judge"
    once = False
    needs = ("spans", "row_split", "npu", "igpu")
    params = (Param("margin", "npu", "", choices=("npu", "igpu")),)

    def init(self):
        self.npu, self.igpu = (next(d.index for d in self.machine.devices if d.kind == k) for k in ("npu", "igpu"))
        self.chunk = self.machine.devices[self.npu].chunk_rows
        self.waits = []

    def request_arrived(self, r):
        self.waits.append(r)

    def request_cancelled(self, r):
        self.waits = [x for x in self.waits if x is not r]

    def launch_done(self, x):
        pass

    def pass_done(self, p):
        self.waits = [r for r in self.waits if not r.left]

    def schedule(self):
        if not self.waits or (self.waits[0].pass_ and self.waits[0].pass_.state != "ready"):
            return
        r = self.waits[0]
        p = r.pass_ or self.form([self.piece(r, 1 << 30)], r.state == "decode")
        if p.op_kind() in ("qkv", "ffn"):
            margin = p.rows_todo % self.chunk if self.param["margin"] == "igpu" else 0
            for device, rows in ((self.npu, p.rows_todo - margin), (self.igpu, margin)):
                if rows:
                    self.launch(p, device, n_ops=1, rows=rows)
        else:
            self.launch(p, self.igpu, n_ops=0 if p.fused_layers else 1)
