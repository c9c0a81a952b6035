"""pd-static and pd-mixed by clauses E.10, policies/README.md and common/hetero.h, with plain lists (judges.py)."""
from judges import Param, Plain, Segment


class Two(Plain):
    """A prompt over NPU and iGPU, operator by operator (common/hetero.h)."""
    needs = ("spans", "row_split", "kv_move", "npu", "igpu")

    def init(self):
        self.npu, self.igpu = (next(d.index for d in self.machine.devices if d.kind == k) for k in ("npu", "igpu"))
        self.chunk = self.machine.devices[self.npu].chunk_rows
        self.mem = {}


class PdMixed(Two):
    """Prompts one by one on the NPU, decodes together on the iGPU, which takes kernels in the order in which they are ready. Prompts that
    find more than a limit in front of them go to the iGPU's iterations, piece by piece."""
    name = "pd-mixed-judge"
    params = (Param("margin", "igpu", "", choices=("npu", "igpu")), Param("max_batch", 1000000, "", 1, 1000000),
              Param("yield", "kernel", "", choices=("kernel", "iteration")), Param("limit_tokens", 2048, "", 0, 1000000000),
              Param("mixed_tokens", 512, "", 1, 1000000))

    def init(self):
        super().init()
        self.waits, self.own, self.runs = [], [], []  # for the NPU, for the iGPU, for decodes
        self.prompt = self.planned = self.ready = None
        self.todo = {}  # rows of the prompt's operator for each device
        self.of_prompt, self.step, self.on, self.step_ready = [], None, None, None
        self.limit = self.param.get("limit_tokens", 1 << 60)

    def request_arrived(self, r):
        q = self.own if sum(x.prefill_left for x in self.waits) > self.limit else self.waits
        head = q[:1] if q is self.waits and self.prompt else []  # on the NPU
        q[:] = head + sorted(q[len(head):] + [r], key=lambda r: (r.arrival_ns, r.id))  # its weights may have been late

    def request_cancelled(self, r):
        self.keep(lambda x: x is not r)

    def keep(self, stays):
        self.waits, self.own, self.runs = ([x for x in q if stays(x)] for q in (self.waits, self.own, self.runs))

    def launch_done(self, x):
        if x is self.on:
            self.on, self.step_ready = None, self.now_ns
        else:
            self.of_prompt.remove(x)

    def pass_done(self, p):
        if p is self.step:
            self.step = None
        else:
            self.prompt, self.todo = None, {}
        done = [s.request for s in p.segments if s.request.state != "queued" and s.request not in self.runs]
        self.keep(lambda x: x not in done)
        self.runs = [r for r in self.runs + done if not r.left]

    def refused(self, what):
        pass

    def begin(self):
        """The first prompt, once all of it has room."""
        if self.prompt is None and self.waits:
            p = self.form([self.piece(self.waits[0], 1 << 30)])
            if self.sync():
                self.prompt, self.planned = p, None

    def fill(self):
        rs = [r for r in self.runs if r.model == self.runs[0].model][:self.param["max_batch"]]
        batch, left = [Segment(r, "decode", 1) for r in rs], self.param.get("mixed_tokens", 0)
        for r in self.own:
            if left and r.model == (batch[0].request if batch else r).model:
                batch.append(self.piece(r, left))
                left -= batch[-1].n_tokens
        return batch

    def iteration(self):
        """Short of KV, prompts wait. Then the last to decode but the first starts over on the NPU, else the last prompt in part."""
        batch = self.fill()
        while batch:
            self.step = self.form(batch, len(batch) == 1 and batch[0].role == "decode")
            if self.sync():
                return
            self.step = None
            if len(batch) > 1 and batch[-1].role == "prefill":
                batch.pop()
                continue
            held = self.runs[1:] or [r for r in self.own if self.gives(r)]
            if not held:
                return
            self.kv(held[-1], "nowhere")
            self.sync()
            if held[-1] in self.runs:
                self.runs.remove(held[-1])
                self.waits = sorted(self.waits + [held[-1]], key=lambda r: (r.arrival_ns, r.id))
            batch = self.fill()

    def gives(self, r):
        return r.kv_tokens > 0 and not self.is_cached(r)

    def plan(self):
        p = self.prompt
        if p is not None and p.op < p.n_ops and not self.of_prompt and self.planned != p.op:
            self.planned, self.ready = p.op, self.now_ns
            npu = p.rows_todo if p.op_kind() in ("qkv", "ffn") else 0
            npu -= npu % self.chunk if self.param["margin"] == "igpu" else 0
            self.todo = {self.npu: npu, self.igpu: p.rows_todo - npu}

    def give(self, device):
        if self.todo.get(device) and self.free_slots[device]:
            self.of_prompt.append(self.launch(self.prompt, device, n_ops=1, rows=self.todo[device], yield_="pass"))
            self.todo[device] = 0

    def iterate(self):
        if not self.free_slots[self.igpu]:
            return
        if self.step is None:
            self.iteration()
        if self.step is not None and self.step.state == "ready" and self.step.op < self.step.n_ops:
            one = self.todo.get(self.igpu) and self.param["yield"] == "kernel"  # then it is the prompt's turn
            self.on = self.launch(self.step, self.igpu, n_ops=one and 1, yield_="kernel" if self.param["yield"] == "kernel" else "pass")

    def schedule(self):
        self.begin()
        self.plan()
        self.give(self.npu)
        busy = self.on is not None or not (self.step or self.runs or self.own)
        if busy:
            self.step_ready = None
        elif self.step_ready is None:
            self.step_ready = self.now_ns
        if not busy and self.todo.get(self.igpu) and self.step_ready < self.ready:
            self.iterate()
        self.give(self.igpu)
        self.iterate()
        x = self.on
        if x is not None and self.todo.get(self.igpu) and self.param["yield"] == "kernel" and x.op_end - x.op_begin > 1 and not x.stop_requested:
            self.preempt(x)


class PdStatic(PdMixed):
    """The NPU has all prompts."""
    name = "pd-static-judge"
    params = PdMixed.params[:3]
