"""hetero-split by clauses E.11, policies/README.md and the head of its file, with plain lists (judges.py)."""
from judges import Param, Segment, Shape
from judges_pd import Two


class HeteroSplit(Two):
    """One pass at a time over NPU and iGPU, each operator in the parts by which the later of both ends first."""
    name = "hetero-split-judge"
    params = (Param("decode", "solver", "", choices=("igpu", "solver", "rows", "columns")), Param("max_batch", 16, "", 1, 1024), Param("split", True, ""))

    def init(self):
        super().init()
        self.waits, self.runs, self.run = [], [], None

    def request_arrived(self, r):
        self.waits.append(r)

    def request_cancelled(self, r):
        self.waits, self.runs = ([x for x in q if x is not r] for q in (self.waits, self.runs))

    def launch_done(self, x):
        pass

    def pass_done(self, p):
        self.run = None
        self.runs = [r for r in self.runs if not r.left]

    def refused(self, what):
        pass

    def fits(self, r):
        need = r.prefill_left + r.kv_state_tokens + (self.kv_cached_tokens([r])[0] if self.is_cached(r) else 0)
        return not self.runs or need + 64 * (len(self.runs) + 1) <= self.kv_free_tokens

    def pick(self):
        while self.run is None:
            while self.waits and len(self.runs) < self.param["max_batch"] and self.fits(self.waits[0]) and not any(r.state == "queued" for r in self.runs):
                self.runs.append(self.waits.pop(0))
            batch = [r for r in self.runs if r.state == "queued"][:1] or [r for r in self.runs if r.model == self.runs[0].model]
            if not batch:
                return
            self.run = self.form([self.piece(r, 1 << 30) for r in batch], len(batch) == 1 and batch[0].state == "decode" and self.param["decode"] != "columns")
            if not self.sync():
                self.run = None
                r = self.runs.pop()
                if r.kv_tokens:
                    self.kv(r, "nowhere")
                self.sync()
                self.waits.insert(0, r)

    def ask(self, p, op, device, rows):
        key = (p.shape, op, device, rows)
        if key not in self.mem:
            self.mem[key] = self.estimate(*key)
        return self.mem[key]

    def t(self, p, op, device, rows):
        return self.ask(p, op, device, rows).t_ns if rows else 0

    def share(self, p, op):
        """Rows for the NPU."""
        n, how = p.shape.rows, self.param["decode"]
        if op not in ("qkv", "ffn"):
            return 0
        if p.shape.prefill_rows and not self.param["split"]:
            return n
        if not p.shape.prefill_rows and (n == 1 or how == "igpu"):
            return 0
        if not p.shape.prefill_rows and how == "rows":
            a, b = (self.ask(p, op, d, 1).bytes_per_s for d in (self.npu, self.igpu))
            return int(n * (a / (a + b)))
        some = {n, *range(0, n, self.chunk if p.shape.prefill_rows else 1)}
        return min(sorted(some, reverse=True), key=lambda m: max(self.t(p, op, self.npu, m), self.t(p, op, self.igpu, n - m)) + (self.machine.sync_ns if 0 < m < n else 0))

    def columns(self, p, op):
        """Of the weights, for the NPU, and what that saves: each part takes its part of the time, and both end together."""
        npu, igpu = (self.t(p, op, d, p.shape.rows) for d in (self.npu, self.igpu))
        part = igpu / (npu + igpu)
        saved = igpu - part * npu - self.machine.sync_ns
        return (int(part * 1024 + 0.5), saved) if saved > 0 else (0, 0)

    def by_columns(self, p):
        device = self.machine.devices[self.igpu]
        if p.op == 0 and sum(self.columns(p, op)[1] for op in ("qkv", "ffn")) <= len(p.layer) * (device.submit_ns + device.completion_ns):
            self.launch(p, self.igpu, yield_="pass")
            return
        npu = self.columns(p, p.op_kind())[0] if p.op_kind() in ("qkv", "ffn") else 0
        for device, n in ((self.npu, npu), (self.igpu, 1024 - npu)):
            if n:
                self.launch(p, device, n_ops=1, yield_="pass", columns=n % 1024)

    def schedule(self):
        self.pick()
        p = self.run
        if p is None or p.state != "ready" or p.op == p.n_ops:
            return
        if self.param["decode"] == "columns" and not p.shape.prefill_rows:
            self.by_columns(p)
            return
        if p.fused_layers or not any(self.share(p, op) for op in p.layer):
            self.launch(p, self.igpu, yield_="pass")
            return
        npu = self.share(p, p.op_kind())
        for device, rows in ((self.npu, npu), (self.igpu, p.rows_todo - npu)):
            if rows:
                self.launch(p, device, n_ops=1, rows=rows, yield_="pass")
