"""sd-npu by clauses D and E.20, its parameters' help and heads of hwmodels/graphs.h, policies/sd_npu and policies/common/speculate.h,
with plain lists (judges.py)."""
from judges_drafts import Acceptance
from xpusim import Policy
from xpusim.policy import Param, Segment, Shape, shape_of

STRATEGIES = ("progressive", "sync", "naive-async", "keep-both", "unified-g1", "unified-g2", "late-start")
DRAFTERS = ("run", "none", "pld", "sam", "ours", "eagle", "model", "lookup", "suffix", "calibrated")
NPU, CPU = {"strategy": "unified-g2"}, {"strategy": "unified-g1", "decode": "cpu"}
SAM, PLD, EAGLE = ({"drafter": who, "draft_ms": ms} for who, ms in (("sam", 9.99), ("pld", 9.99), ("eagle", 0)))
SYSTEMS = {  # the systems of the paper: head of sd-npu.c
    "npu": {**NPU, "speculate": "false"}, "npu+g": {"strategy": "progressive", "speculate": "false"}, "npu+sd": {**NPU, **SAM},
    "npu+g+sd": {"strategy": "progressive", **SAM}, "npu-sam": {**NPU, **SAM}, "npu-pld": {**NPU, **PLD}, "npu-eagle": {**NPU, **EAGLE},
    "sd-npu": {"strategy": "progressive", "drafter": "ours", "length": "pass", "draft_ms": 3, "calibrate_ms": 2, "calibrate_mb": 55},
    "cpu": {**CPU, "speculate": "false"}, "cpu-sam": {**CPU, **SAM}, "cpu-pld": {**CPU, **PLD}, "cpu-eagle": {**CPU, **EAGLE}}


class SdNpu(Policy):
    """One request at a time. The blocks of a chunk run one after the other, each on the graph that is there."""
    name = "sd-npu-judge"
    needs = ("spans", "load", "verify", "npu", "cpu")
    params = (Param("strategy", "progressive", "", choices=STRATEGIES), Param("blocks", 6, "", 1, 32), Param("g1", 256, "", 1, 4096),
              Param("g2", 32, "", 1, 4096), Param("decode", "npu", "", choices=("npu", "cpu")), Param("speculate", True, ""),
              Param("drafter", "run", "", choices=DRAFTERS), Param("length", "offered", "", choices=("offered", "pass", "adaptive")),
              Param("draft_ms", 3.0, "", 0, 1000), Param("calibrate_ms", 0.0, "", 0, 10), Param("overlap", False, ""), Param("keep_old", False, ""),
              Param("calibrate_mb", 0.0, "", 0, 1e5), Param("eagle_forwards", 1, "", 1, 100), Param("draft_on", "npu", "", choices=("npu", "cpu")))

    def init(self):
        self.npu, self.cpu = (next(d.index for d in self.machine.devices if d.kind == k) for k in ("npu", "cpu"))
        self.n, how = self.param["blocks"], self.param["strategy"]
        self.rows = {1: self.param["g1"], 2: self.param["g2"]}
        self.bytes = self.llm.weight_bytes / self.n
        versions = {"keep-both": (1, 2), "unified-g2": (2,)}.get(how, (1,))
        self.switches = how not in ("keep-both", "unified-g1", "unified-g2") and self.param["decode"] == "npu"
        for v in versions if how.startswith("unified") else (1, 2):
            self.graph(v, self.rows[v], self.n)
        for b in range(self.n):
            for v in versions:
                self.map("graph_block", b, v, self.bytes)
        if self.param["decode"] == "cpu":
            self.map("graph_block", 0, 3, self.llm.weight_bytes)
        if self.param["speculate"] and self.param["drafter"] == "eagle":
            m = self.llm
            self.map("graph_block", 0, 4, m.body_weights * m.body_bytes_per_weight / m.n_layers + m.head_weights * m.head_bytes_per_weight)
        if self.param["speculate"] and self.param["calibrate_mb"]:
            self.map("graph_block", 0, 5, self.param["calibrate_mb"] * 1e6)
        self.has = [versions[0]] * self.n  # the version that a block has, or 0
        self.coming, self.old = [0] * self.n, [0] * self.n
        self.waits, self.r, self.run, self.on, self.block = [], None, None, None, 0
        self.until, self.drafted, self.calibrated = 0, None, False
        self.passes, self.seen = 0, Acceptance()  # of the draft model, to come
        self.left, self.todo, self.used = 0, None, None  # blocks of the round; what naive-async loads next; the graph in use

    def request_arrived(self, r):
        self.waits.append(r)

    def request_cancelled(self, r):
        self.waits = [x for x in self.waits if x is not r]
        if r is self.r:
            self.r = None

    def launch_done(self, x):
        self.on = None
        if self.run.segments[0].role == "draft":
            return
        self.block += 1
        self.left -= 1
        if self.run.segments[0].role == "prefill" and self.switches and not self.r.model:
            self.block_done(self.block - 1)

    def pass_done(self, p):
        self.run = None
        if p.segments[0].role == "draft":
            self.passes -= 1
        else:
            self.drafted = None
            self.seen.saw(p)
        if self.r.left:
            self.r = None

    def resident_ready(self, kind, a, b):
        if b == self.coming[a]:
            self.old[a] = self.has[a]
            self.has[a], self.coming[a] = b, 0

    # graphs
    def bring(self, b, v):
        """What is on its way for nobody is taken back. With keep_old one block at a time is there twice, where memory holds that."""
        keep = self.param["keep_old"]
        if self.coming[b] not in (0, v):
            self.drop("graph_block", b, self.coming[b])
            self.coming[b] = 0
        if self.coming[b] or self.has[b] == v or keep and (any(self.coming) or any(self.old)):
            return
        if not keep:
            self.give_up(b)
        self.load("graph_block", b, v, self.bytes)
        comes = self.sync()
        if not comes and keep:
            self.give_up(b)
            self.load("graph_block", b, v, self.bytes)
            comes = self.sync()
        self.coming[b] = v if comes else 0  # else it tries again, when it is asked again

    def give_up(self, b):
        if self.has[b]:
            self.drop("graph_block", b, self.has[b])
            self.has[b] = 0

    def refused(self, what):
        pass

    def version(self, b, prefill):
        how = self.param["strategy"]
        if how == "keep-both":
            return 1 if prefill else 2
        if not self.switches:
            return self.has[b]
        return self.has[b] if prefill or self.has[b] == 2 else 0

    def decode_graphs(self):
        if self.switches and not self.r.model:
            for b in reversed(range(self.n)):
                self.bring(b, 2)

    def block_done(self, b):
        if self.param["strategy"] == "naive-async" and self.last:
            self.todo = b

    def op(self, b):
        return self.run.n_ops if b == self.n else self.llm.n_layers * b // self.n * len(self.llm.layer)

    def time(self, v):
        """Annotated, of a block of a full chunk from here on: its part of all layers."""
        n, k = self.param["g1"], self.r.kv_tokens
        shape = Shape(n, 0, 1, n, n * k + n * (n + 1) // 2, k + n, k + n, 0)
        return sum(self.estimates([(shape, op, self.npu, n, self.rows[v], v)])[0].t_ns for op in self.llm.layer) * self.llm.n_layers // self.n

    def load_ns(self):
        m = self.machine
        return m.loader_evict_ns + m.loader_fixed_ns + round(self.bytes / m.loader_bytes_per_s * 1e9)

    def progress(self):
        """The last block that has its old graph, while the fewest computes that hide its load run, none of them its own."""
        if self.left > 0 or any(self.coming):
            return
        chunks = -(-self.r.prefill_left // self.param["g1"])
        ahead = chunks * self.n - self.block  # blocks to compute
        time = {v: self.time(v) for v in (1, 2)}
        if self.param["strategy"] == "late-start" and ahead * time[1] > self.has.count(1) * self.load_ns():
            return
        k = t = 0
        while k < ahead and t < self.load_ns():
            t += time[self.has[(self.block + k) % self.n]]
            k += 1
        idle = [j for j in range(self.n) if self.has[j] == 1 and (j - self.block) % self.n >= k]
        if idle:
            self.bring(idle[-1], 2)
            self.left = k

    # drafts
    def draft_length(self):
        r, most = self.r, self.r.max_output_tokens - self.r.generated_tokens - 1
        n = min(self.draft_tokens([r])[0], most) if self.param["speculate"] else 0
        rows = self.graph_rows()[0]
        if self.param["length"] == "adaptive":
            return self.seen.length(n, rows or 1, lambda n: self.step_ns(n) + (self.draft_ns(n, True) if n else 0))
        return min(n, rows - 1) if self.param["length"] == "pass" and rows else n

    def verifier(self):
        return self.npu if self.param["decode"] == "npu" else self.cpu

    def graph_rows(self):
        """Of the graph that decodes, and its version; other models run in the NPU's own shapes, and a CPU takes any."""
        if self.param["decode"] == "cpu" or self.r.model:
            return self.machine.devices[self.verifier()].chunk_rows, 0
        v = 1 if self.param["strategy"] == "unified-g1" else 2
        return self.rows[v], v

    def pass_ns(self, w, device, layers, graph):
        kinds = self.models[w.model].layer + ("head",)
        t = [e.t_ns for e in self.estimates([(w, op, device, 0) + graph for op in kinds])]
        return sum(t[:-1]) * layers + t[-1]

    def step_ns(self, drafted):
        w = shape_of([Segment(self.r, "verify", 1 + drafted)])
        return self.pass_ns(w, self.verifier(), self.models[w.model].n_layers, self.graph_rows())

    def draft_ns(self, drafted, passes):
        """EAGLE's model is a layer and the head, where and as its target decodes; a model of the run drafts a token a pass."""
        w, model, device = shape_of([Segment(self.r, "verify", 1)]), self.draft_model, self.drafts_on()
        if self.param["drafter"] == "model":
            own = self.machine.devices[device].chunk_rows
            return drafted * self.pass_ns(w._replace(model=model), device, self.models[model].n_layers, (own,)) if passes else 0
        eagle = self.param["eagle_forwards"] * self.pass_ns(w, self.verifier(), 1, self.graph_rows()) if self.param["drafter"] == "eagle" else 0
        return self.param["draft_ms"] * 1e6 + eagle

    def drafts_on(self):
        return self.npu if self.param["draft_on"] == "npu" else self.cpu

    def begin(self):
        if self.r is None and self.switches:
            for b in range(self.n):
                self.bring(b, 1)
        if self.r is None and self.waits:
            self.r, self.calibrated, self.left = self.waits.pop(0), False, 0

    def next_pass(self):
        r = self.r
        if r.state == "queued":
            rows = (self.machine.devices[self.npu].chunk_rows or r.prefill_left) if r.model else self.param["g1"]
            self.last = r.prefill_left <= rows
            self.run = self.form([Segment(r, "prefill", min(r.prefill_left, rows))])
        else:
            if not self.calibrated:
                self.calibrated = True
                self.decode_graphs()
                wait = 0 if self.param["overlap"] or not self.param["speculate"] else self.param["calibrate_ms"] * r.input_tokens
                self.until = self.now_ns + int(wait * 1e6 + 0.5)
            if self.now_ns < self.until:
                self.set_timer(self.until)
                return
            if self.drafted is None:
                self.drafted = self.draft_length()
                if self.drafted:
                    self.passes = self.drafted if self.param["drafter"] == "model" else 0
                    self.until = self.now_ns + int(self.draft_ns(self.drafted, False) + 0.5)
                    if self.now_ns < self.until:
                        self.set_timer(self.until)
                        if self.param["drafter"] == "eagle":
                            self.occupy(self.verifier(), self.until)
                        return
            n = self.drafted
            if self.passes:
                self.run = self.form([Segment(r, "draft", 0)])
                return
            self.run = self.form([Segment(r, "verify", 1 + n) if n else Segment(r, "decode", 1)])
            if n and not self.sync():  # KV has room for one token, maybe
                self.run = self.form([Segment(r, "decode", 1)])
        self.block = 0

    def schedule(self):
        for b in range(self.n):
            if self.old[b] and (self.on is None or self.used != (b, self.old[b])):
                self.drop("graph_block", b, self.old[b])
                self.old[b] = 0
        if self.todo is not None:
            b, self.todo = self.todo, None
            self.bring(b, 2)
        self.begin()
        if self.r is None:
            return
        if self.r.state == "decode" and self.param["keep_old"] and self.calibrated and self.now_ns >= self.until:
            self.decode_graphs()
        if self.on is not None:
            return
        if self.run is None:
            self.next_pass()
        p = self.run
        if p is None or p.op == p.n_ops or not all(self.free_slots[d] for d in (self.npu, self.cpu)):  # EAGLE's model is on it
            return
        prefill, self.used = p.segments[0].role == "prefill", None
        if p.segments[0].role == "draft":
            self.on = self.launch(p, self.drafts_on(), yield_="pass")
            return
        if not prefill and self.param["decode"] == "cpu":
            self.on = self.launch(p, self.cpu, yield_="pass")
            return
        if p.shape.model:
            self.on = self.launch(p, self.npu, yield_="pass")
            return
        v = self.version(self.block, prefill)
        if v:
            self.used = self.block, v
            if prefill and self.switches and self.param["strategy"] in ("progressive", "late-start"):
                self.progress()
            self.on = self.launch(p, self.npu, n_ops=self.op(self.block + 1) - p.op, chunk_rows=self.rows[v], graph=v, graph_block=self.block,
                                  yield_="pass")
