"""agent-xpu-v2 by clauses B and policies/README.md B, with plain lists (judges.py)."""
from types import SimpleNamespace

from judges_drafts import Acceptance
from judges_gap import FLASH, PARAMS as GAP, Flash, Gaps
from judges import E9, Param, Plain, Segment, Shape, known, shape_of

CHOICES = {"yield": ("kernel", "iteration"), "shortest": ("none", "reactive", "all"), "elastic": ("on", "off", "static", "class"),
           "split": ("makespan", "balance"), "memory_rule": ("igpu", "off", "defer"), "piggyback": ("short", "long"),
           "preempt": ("kernel", "layer", "none"), "cap": ("fixed", "slo", "marginal", "open"), "margin": ("igpu", "choose"),
           "speculate": ("none", "igpu", "npu"), "drafter": ("run", "model", "lookup", "suffix")}
NUMBERS = {"prefill_first": True, "guard": False, "beta": 0.25, "warmup": True, "warm_reactive": False, "cache_entries": 8, "cache_ttl_s": 60.0,
           "b_rf": 3, "max_batch": 32, "length_bucket": 256, "suspended": 1, "ageing": True, "t_age_s": 900.0, "aged_max": 1,
           "aged_chunks": True, "tbt_slo_ms": 200.0, "epsilon": 0.1, "warm_s": 0.0, "verify_rows": 32, "draft_ms": 3.0}


class AgentXpuV2(Plain):
    name = "agent-xpu-v2-judge"
    flags = ("busy_poll",)
    needs = ("spans", "row_split", "kv_move", "compile", "verify", "npu", "igpu")
    params = tuple(Param(k, v[0], "", choices=v) for k, v in CHOICES.items()) + tuple(Param(k, v, "", 0, 1e9) for k, v in NUMBERS.items()) + GAP + FLASH

    def init(self):
        self.npu, self.igpu = (next(d.index for d in self.machine.devices if d.kind == k) for k in ("npu", "igpu"))
        self.device, self.chunk, self.mem = self.igpu, self.machine.devices[self.npu].chunk_rows, {}
        self.queue = {"reactive": [], "proactive": []}    # prompts
        self.between = {"reactive": [], "proactive": []}  # sequences between two batches
        self.current = self.aside = None                  # the serial prefill; an aged one on the iGPU, next to a reactive one
        self.suspended, self.aged = [], set()
        self.batch = self.batch_on = None
        self.hold, self.n_batches, self.stays = None, 0, {}  # a kernel that other decodes wait for; (last batch, the first of a row of them)
        self.seen, self.drafted, self.drafts_at, self.on_npu = Acceptance(), False, None, False
        self.made, self.draft_passes = {}, 0              # tokens that a model has drafted for each; its passes since another batch
        self.gap, self.flash = Gaps(self, self.context_ns), Flash(self, self.context_ns)
        self.kernels, self.compiling = {}, None           # compiled attention: when it was used

    # hooks
    def request_arrived(self, r):
        self.gap.arrived(r)
        if not self.gap.holds(r):
            self.queue[r.cls].append(r)

    def kv_moved(self, r):
        if self.flash.moved(r):
            (self.between if r.state == "decode" else self.queue)[r.cls].append(r)

    def request_cancelled(self, r):
        for q in (self.queue[r.cls], self.between[r.cls], self.gap.back, self.flash.there):
            if r in q:
                q.remove(r)
        self.aged.discard(r.id)

    def launch_done(self, x):
        self.batch_on = None if x is self.batch_on else self.batch_on
        self.hold = None if x is self.hold else self.hold
        for f in [self.current, self.aside] + self.suspended:
            if f is not None and x in f.on.values():
                f.on = {d: y for d, y in f.on.items() if y is not x}
                if x.outcome != "done":
                    f.planned, f.rows = None, {}  # what is left is planned again

    def pass_done(self, p):
        self.batch = None if p is self.batch else self.batch
        self.seen.saw(p)
        for r in (s.request for s in p.segments):
            self.made[r.id] = self.made.get(r.id, 0) + 1 if p.segments[0].role == "draft" else 0
        self.current, self.aside = (None if f is not None and f.p is p else f for f in (self.current, self.aside))
        self.suspended = [f for f in self.suspended if f.p is not p]
        for r in (s.request for s in p.segments):
            if r.left:
                self.aged.discard(r.id)
                self.gap.finished(r)
            else:
                self.between[r.cls].append(r)

    def context_ns(self, model, tokens):
        """At the default mapping."""
        w, llm, t = Shape(tokens, 1, 1, tokens, tokens * (tokens + 1) // 2, tokens, tokens, model), self.models[model], 0
        ask = lambda op, d, rows: self.estimate(w, op, d, rows).t_ns if rows else 0
        for op in llm.layer:
            chunks = 0 if op == "mha" else tokens // self.chunk * self.chunk
            t += llm.n_layers * (ask(op, self.npu, chunks) + ask(op, self.igpu, tokens - chunks))
        return t + ask("head", self.igpu, 1)

    def resident_ready(self, kind, a, b):
        self.kernels[(a, b)] = self.now_ns
        self.compiling = None

    # B.8
    def promote(self):
        """The oldest proactive requests that are old enough, so many at once, until they leave."""
        old = sorted((r.arrival_ns, r.id) for r in self.requests.values() if r.cls == "proactive" and r.id not in self.aged)
        for arrival, i in old:
            if self.param["aged_max"] and len(self.aged) >= self.param["aged_max"]:
                return
            if self.now_ns - arrival < self.param["t_age_s"] * E9:
                self.set_timer(arrival + round(self.param["t_age_s"] * E9))
                return
            self.aged.add(i)

    # which prompt
    def oldest_aged(self):
        return min((r for r in self.queue["proactive"] if r.id in self.aged), key=lambda r: (r.arrival_ns, r.id), default=None)

    def next_of(self, cls):
        """The first; the shortest; or the shortest with a kernel, while decodes of users want the iGPU."""
        q = self.queue[cls]
        if cls == "proactive" and self.param["warm_s"] and self.decodes("reactive"):
            q = [r for r in q if self.key(r) in self.kernels] or [r for r in q if self.now_ns - r.arrival_ns >= self.param["warm_s"] * E9]
        elif self.param["shortest"] not in ("all", cls):
            return q[0] if q else None
        return min(q, key=lambda r: r.prefill_left, default=None)

    def begin(self, r, alone=False):
        if r.cls == "proactive" and self.flash.there and not alone:  # these came before it
            return None
        p = self.form([Segment(r, "prefill", r.prefill_left)])
        while not self.sync():
            if r.cls == "proactive" or not self.make_room():
                return None
            p = self.form([Segment(r, "prefill", r.prefill_left)])
        self.queue[r.cls].remove(r)
        return SimpleNamespace(r=r, p=p, warm=self.take_kernel(r), alone=alone, planned=None, rows={}, on={}, not_before=0, busy=False)

    def resume(self, f, alone=False):
        self.suspended.remove(f)
        f.warm = self.take_kernel(f.r) or f.warm
        f.alone, f.planned, f.rows = alone, None, {}
        return f

    def make_room(self):
        """For a reactive prompt."""
        if self.flash.out:
            return False
        if self.between["proactive"]:
            self.lose(self.between["proactive"][-1])
            return True
        for f in reversed(self.suspended):
            if f.p.state == "ready":
                self.cancel(f.p)
                self.sync()
                self.suspended.remove(f)
                if not f.r.left:
                    self.queue["proactive"].insert(0, f.r)
                return True
        return False

    def lose(self, r):
        self.between[r.cls].remove(r)
        if not self.flash.takes(r):
            self.kv(r, "nowhere")
            self.sync()
            self.queue[r.cls].insert(0, r)

    def choose(self):
        f, how = self.current, self.param["preempt"]
        if f and f.r.cls == "proactive" and self.queue["reactive"] and len(self.suspended) < self.param["suspended"] and f.p.op < f.p.n_ops:
            layer_ends = not f.p.n_launches and f.p.op % len(f.p.layer) == 0 and f.p.rows_todo in (f.p.shape.rows, f.p.shape.logit_rows)
            if how == "kernel" or (how == "layer" and layer_ends):
                for d in sorted(f.on):
                    self.stop(f.on[d])
                self.suspended.append(f)
                self.current = None
        if self.current is None and self.aside and not self.queue["reactive"]:
            self.current, self.aside = self.aside, None
            self.current.alone = False
        if self.current is None:
            self.current = self.next_prefill()
        if self.aside is None and self.current and self.current.r.cls == "reactive":
            first = self.suspended[0] if self.suspended else None
            if first is None and self.oldest_aged():
                self.aside = self.begin(self.oldest_aged(), True)
            elif first and first.r.id in self.aged and not first.p.n_launches:
                self.aside = self.resume(first, True)

    def next_prefill(self):
        """Reactive, suspended, aged, the oldest; the aged one before a suspended one that is younger, where a buffer is left for it."""
        if self.queue["reactive"]:
            return self.begin(self.next_of("reactive"))
        aged = self.oldest_aged()
        if self.suspended:
            f = self.suspended[0]
            older = aged and (aged.arrival_ns, aged.id) < (f.r.arrival_ns, f.r.id)
            if not (older and len(self.suspended) < self.param["suspended"]):
                return None if f.p.n_launches else self.resume(f)
        r = aged or self.next_of("proactive")
        return self.begin(r) if r else None

    # where its ops run
    def ns(self, f, op, d, rows):
        return self.answer(f, op, d, rows).t_ns if rows else 0

    def answer(self, f, op, d, rows):
        key = f.p.shape, op, d, rows
        if key not in self.mem:
            self.mem[key] = self.estimate(*key)
        return self.mem[key]

    def deferred(self, f, op, rows):
        """B.6: a memory-bound NPU kernel next to decodes of the higher class."""
        return (self.param["memory_rule"] != "off" and f.r.cls == "proactive" and f.r.id not in self.aged and self.decodes("reactive") and
                self.answer(f, op, self.npu, rows).memory_bound)

    def plan(self, f):
        p, op, rows = f.p, f.p.op_kind(), f.p.rows_todo
        if op == "qkv" or f.planned is None:
            f.busy = self.decodes("reactive") or (self.param["elastic"] != "class" and self.decodes("proactive"))
        f.planned, f.not_before, npu = p.op, self.now_ns, 0
        if f.alone:
            pass
        elif f.warm or (f is self.current and self.aside and op in ("qkv", "ffn")):
            turns = op == "head" or self.param["memory_rule"] == "igpu"
            npu = 0 if turns and self.deferred(f, op, rows) else rows
        elif op in ("qkv", "ffn"):
            npu = self.split(f, op, rows)
        f.rows = {self.npu: npu, self.igpu: rows - npu}

    def ends(self, f, op, rows, npu):
        return self.ns(f, op, self.npu, npu), self.ns(f, op, self.igpu, rows - npu)

    def split(self, f, op, rows):
        """B.5; the margin is the iGPU's, unless the coordinator chooses."""
        g = self.chunk
        whole, pads = rows // g, rows % g > 0 and self.param["margin"] == "choose"
        later = lambda m: max(self.ends(f, op, rows, min(m * g, rows)))

        def apart(m):
            """Of the ends, with a kernel for every chunk."""
            if m > whole:
                return later(m)
            left = (whole - m) * self.ns(f, op, self.igpu, g if m < whole else 0) + self.ns(f, op, self.igpu, rows % g)
            return abs(m * self.ns(f, op, self.npu, g if m else 0) - left)
        if f.r.cls == "reactive" and self.param["elastic"] != "off":
            m = min(range(whole + pads + 1), key=lambda m: ((later if self.param["split"] == "makespan" else apart)(m), -m))
            if f.busy and self.param["elastic"] != "static":
                m = max(m, -int(-(1 - self.param["beta"]) * whole // 1))
                t = self.ends(f, op, rows, min(m * g, rows))
                f.not_before = ("late", max(0, t[0] - t[1])) if 0 < m * g < rows else self.now_ns
        else:
            m = whole + (pads and ((f.r.cls == "proactive" and self.decodes("reactive")) or later(whole + 1) < later(whole)))
        return min(m * g, rows)

    def wants_igpu(self, f):
        """With a guard, an iteration with reactive requests ends before a proactive prefill goes on."""
        if f is None or not f.rows.get(self.igpu) or self.igpu in f.on or isinstance(f.not_before, tuple) or self.now_ns < f.not_before:
            return False
        return not (self.param["guard"] and f.r.cls == "proactive" and self.batch and self.reactive(self.batch) and self.batch.op < self.batch.n_ops)

    def place(self, f):
        p = f.p
        if f.planned != p.op and p.n_launches == 0 and p.op < p.n_ops:
            self.plan(f)
        op = p.op_kind() if p.op < p.n_ops else None
        npu = f.rows.get(self.npu, 0)
        if npu and self.npu not in f.on and self.free_slots[self.npu] and not self.deferred(f, op, npu):
            apart = f.r.cls == "reactive" and self.param["memory_rule"] != "off" and self.answer(f, op, self.npu, npu).memory_bound
            self.put(f, self.npu, npu, self.chunk)
            if isinstance(f.not_before, tuple):
                f.not_before = self.now_ns + f.not_before[1]
                self.set_timer(f.not_before)
            if apart:
                self.hold = f.on[self.npu]
                if self.batch and all(s.request.cls == "proactive" for s in self.batch.segments):
                    self.stop(self.batch_on)
        if not self.wants_igpu(f) or (not self.param["prefill_first"] and not self.short and (self.decodes("reactive") or self.decodes("proactive"))):
            return
        if self.free_slots[self.igpu]:
            rows = f.rows[self.igpu]
            if op in ("qkv", "ffn") and f.r.cls == "proactive" and rows > self.chunk and self.param["aged_chunks"]:
                self.put(f, self.igpu, rows // self.chunk * self.chunk, self.chunk)
            else:
                self.put(f, self.igpu, rows, self.machine.devices[self.igpu].chunk_rows)
            return
        self.stop(self.batch_on)
        if f is self.current and self.aside:
            self.stop(self.aside.on.get(self.igpu))

    def put(self, f, d, rows, chunk):
        f.on[d] = self.launch(f.p, d, n_ops=1, rows=rows, yield_="kernel", chunk_rows=chunk)
        f.rows[d] -= rows

    def stop(self, x):
        if x is not None and not x.stop_requested:
            self.preempt(x)

    # decodes
    def reactive(self, p):
        return any(s.request.cls == "reactive" for s in p.segments)

    def decodes(self, cls):
        """Somebody of the class decodes or waits to. A batch with reactive requests counts as theirs."""
        return bool(self.between[cls]) or (self.batch is not None and (cls == "proactive" or self.reactive(self.batch)))

    def time(self, rs):
        return self.pass_ns(shape_of([Segment(r, "decode", 1) for r in rs]), len(rs) == 1)

    def fits(self, users, others):
        cap, b_rf, n = self.param["cap"], self.param["b_rf"], len(users) + len(others)
        if cap == "fixed":
            return not b_rf or n <= b_rf
        if cap == "slo":
            slos = [r.tbt_slo_ns for r in users if known(r.tbt_slo_ns)]
            return self.time(users + others) <= (min(slos) if slos else round(self.param["tbt_slo_ms"] * 1e6))
        return (cap == "open" and n <= b_rf) or self.time(users + others) <= (1 + self.param["epsilon"]) * self.time(users)

    def compose(self):
        """B.7: who leaves a mixed batch is of the longest bucket, then the newest in the batch, then the newest."""
        users, others = self.between["reactive"], self.between["proactive"]
        model = (users or others)[0].model
        users, others = ([r for r in q if r.model == model] for q in (users, others))
        users = users[:self.param["max_batch"]]

        def leaves(r):
            last, first = self.stays.get(r.id, (-1, 0))
            longest = r.length // self.param["length_bucket"] * (1 if self.param["piggyback"] == "short" else -1)
            return longest, first if last == self.n_batches else self.n_batches + 1, r.arrival_ns, r.id
        while users and others and not self.fits(users, others) and any(r.id not in self.aged for r in others):
            others.remove(max((r for r in others if r.id not in self.aged), key=leaves))
        return (users + others)[:self.param["max_batch"]]

    def form_batch(self):
        while self.between["reactive"] or self.between["proactive"]:
            batch = [Segment(r, "decode", 1) for r in self.compose()]
            before, drafts = self.seen.idle, self.speculates(batch)
            if drafts and not self.makes_drafts():  # it is chosen again when they are there
                self.seen.idle, self.on_npu = before, False
                return
            ok = self.tries(drafts or batch)
            if not ok and drafts:  # there may be room for one token each
                self.on_npu = False
                ok = self.tries(batch)
            if ok:
                self.drafted = False
                if self.batch.segments[0].role == "draft":
                    self.draft_passes += 1
                    return
                self.draft_passes = 0
                self.n_batches += 1
                for r in (s.request for s in batch):
                    last, first = self.stays.get(r.id, (-1, 0))
                    self.stays[r.id] = self.n_batches, first if last == self.n_batches - 1 else self.n_batches
                return
            if len(self.between["reactive"] + self.between["proactive"]) < 2 or self.flash.out:
                self.short = not self.param["prefill_first"]
                return
            self.lose(max(self.between["proactive"] or self.between["reactive"], key=lambda r: (r.arrival_ns, r.id)))

    def tries(self, batch):
        self.batch = self.form(batch, len(batch) == 1 and batch[0].role == "decode")
        if not self.sync():
            self.batch = None
            return False
        for s in batch:
            self.between[s.request.cls].remove(s.request)
        return True

    def decode(self):
        first = self.param["prefill_first"]
        if self.verifies_on_npu():
            return
        if self.batch_on or not self.free_slots[self.igpu] or (first and (self.wants_igpu(self.current) or self.wants_igpu(self.aside))):
            return
        if self.batch is None and not (self.hold and not self.between["reactive"]) and self.has_drafts():
            self.form_batch()
            if self.verifies_on_npu():
                return
        if self.batch and self.batch.state == "ready" and not (self.hold and not self.reactive(self.batch)):
            self.batch_on = self.launch(self.batch, self.igpu, yield_="kernel" if first and self.param["yield"] == "kernel" else "pass")

    # speculation
    def offered(self, r):
        n = self.draft_tokens([r])[0] if self.param["speculate"] != "none" else 0
        return min(n, r.max_output_tokens - r.generated_tokens - 1)

    def by_model(self):
        return self.param["speculate"] != "none" and self.param["drafter"] == "model"

    def has_drafts(self):
        """The host drafts before the batch is formed; where the last batch wanted none, the next has to want them first."""
        if self.by_model() or not any(self.offered(r) for q in self.between.values() for r in q):
            self.drafts_at = None
            return True
        return (self.drafts_at is None and self.seen.idle > 0) or self.makes_drafts()

    def makes_drafts(self):
        ns = round(self.param["draft_ms"] * 1e6)
        if not ns or self.by_model() or self.drafted:
            return True
        if self.drafts_at is None:
            self.drafts_at = self.now_ns + ns
            self.set_timer(self.drafts_at)
        elif self.now_ns >= self.drafts_at:
            self.drafted, self.drafts_at = True, None
        return self.drafted

    def no_prompts(self):
        return not (self.current or self.aside or self.suspended or any(self.queue.values()))

    def sum_ns(self, w, token_level, rest, rows):
        """Op by op; only a device that has the whole graph runs attention and head in it."""
        llm = self.models[w.model]
        asks = [(w, op, token_level, 0, rows, 1) if rows and op in ("qkv", "ffn") else (w, op, rest) for op in llm.layer + ("head",)]
        t = [e.t_ns for e in self.estimates(asks)]
        return sum(t[:-1]) * llm.n_layers + t[-1]

    def step_ns(self, batch, drafted, npu):
        """One in which all verify so many, and its drafting."""
        if npu:
            w = shape_of([Segment(s.request, "verify", 1 + drafted) for s in batch])
            t = self.sum_ns(w, self.npu, self.igpu, self.param["verify_rows"]) + 2 * self.models[w.model].n_layers * self.machine.sync_ns
        elif drafted:
            t = self.sum_ns(shape_of([Segment(s.request, "verify", 1 + drafted) for s in batch]), self.igpu, self.igpu, 0)
        else:
            t = self.time([s.request for s in batch])
        if self.by_model():
            w = shape_of([Segment(s.request, "verify", 0 + 1) for s in batch])._replace(model=self.draft_model)
            return t + drafted * self.sum_ns(w, self.igpu, self.igpu, 0)
        return t + (round(self.param["draft_ms"] * 1e6) if drafted else 0)

    def speculates(self, batch):
        """The batch with drafts, or a pass that drafts for it, where that gains."""
        self.on_npu = False
        most = max((self.offered(s.request) for s in batch), default=0)
        if not most:
            return None
        npu = self.param["speculate"] == "npu" and self.no_prompts()
        n = self.seen.length(most, max(1, self.param["verify_rows"] // len(batch)) if npu else 1, lambda n: self.step_ns(batch, n, npu))
        if not n:
            return None
        want = {s.request.id: min(n, self.offered(s.request)) for s in batch}
        if self.by_model():
            lack = [s.request for s in batch if self.made.get(s.request.id, 0) < want[s.request.id]]
            if lack and self.draft_passes < n:
                return [Segment(r, "draft", 0) for r in lack]
            want = {i: min(k, self.made.get(i, 0)) for i, k in want.items()}
        self.on_npu = npu
        return [s._replace(role="verify", n_tokens=1 + want[s.request.id]) if want[s.request.id] else s for s in batch]

    def verifies_on_npu(self):
        """Op by op, until a prompt wants the NPU."""
        p = self.batch
        if p is None or not self.on_npu or p.state != "ready":
            return False
        self.on_npu = self.no_prompts()
        if self.on_npu and p.op < p.n_ops:
            own = p.op_kind() in ("qkv", "ffn")
            device = self.npu if own else self.igpu
            if self.free_slots[device]:
                self.batch_on = self.launch(p, device, n_ops=1, yield_="kernel", **({"chunk_rows": self.param["verify_rows"]} if own else {}))
        return self.on_npu

    # B.6
    def key(self, r):
        return r.length, r.model

    def take_kernel(self, r):
        if not self.param["warmup"] or (r.cls == "reactive" and not self.param["warm_reactive"]) or self.key(r) not in self.kernels:
            return False
        self.kernels[self.key(r)] = self.now_ns
        return True

    def warm(self):
        """One after the other, for reactive prompts, suspended ones, and those that wait."""
        if not self.param["warmup"]:
            return
        users = self.queue["reactive"] if self.param["warm_reactive"] else []
        order = [users, [f.r for f in self.suspended], self.queue["proactive"]]
        wanted = [self.key(r) for q in order for r in q]
        used = [self.key(f.r) for f in (self.current, self.aside) if f and f.warm]
        for k in [k for k, t in self.kernels.items() if self.now_ns - t > self.param["cache_ttl_s"] * E9 and k not in wanted + used]:
            self.forget(k)
        if self.compiling:
            if self.compiling in wanted:
                return
            self.drop("compiled_attention", *self.compiling)  # too late
            self.compiling = None
        if self.param["warm_s"]:
            wanted[len(wanted) - len(order[2]):] = map(self.key, sorted(order[2], key=lambda r: r.prefill_left))
        k = next((k for k in wanted if k not in self.kernels), None)
        if k is None:
            return
        if len(self.kernels) >= self.param["cache_entries"]:
            idle = [x for x in self.kernels if x not in wanted + used]
            if not idle:
                return
            self.forget(min(idle, key=self.kernels.get))
        self.compile("compiled_attention", *k)
        self.compiling = k

    def forget(self, k):
        self.drop("compiled_attention", *k)
        del self.kernels[k]

    def prefill(self):
        self.choose()
        for f in (self.current, self.aside):
            if f:
                self.place(f)

    def stuck(self):
        waits = any(self.queue.values()) or any(self.between.values()) or self.gap.back or self.flash.there
        return waits and not self.suspended and not any((self.current, self.aside, self.batch, self.drafts_at))

    def schedule(self):
        self.steps()
        while self.reads_back() or self.stuck() and (self.gap.yields() or self.gap.evicts(self.queue["proactive"]) or self.gap.evicts(self.queue["reactive"])):
            self.warm()
            self.steps()
        self.warm()

    def reads_back(self):
        """With four blocks for every sequence; a reactive prompt takes memory before."""
        waits = len(self.between["reactive"] + self.between["proactive"])
        n = waits + (len(self.batch.segments) if self.batch else 0)
        return not self.queue["reactive"] and self.flash.back(4 * self.kv_block_tokens * n, not waits and self.stuck())

    def steps(self):
        if self.param["ageing"]:
            self.promote()
        self.gap.schedule()
        self.short = False
        self.prefill()
        waiting = len(self.queue["reactive"])
        self.decode()
        if len(self.queue["reactive"]) > waiting or self.short:  # who gave up its KV; decode goes first and has no memory
            self.prefill()
