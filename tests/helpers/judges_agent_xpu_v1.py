"""agent-xpu-v1 by clauses A and policies/README.md A, with plain lists (judges.py)."""
import math
from types import SimpleNamespace

from judges_gap import FLASH, PARAMS as GAP, Flash, Gaps
from judges import E9, Param, Plain, Segment, Shape, shape_of

FLAGS = ("preempt", "elastic", "intra_backfill", "inter_backfill", "duration", "energy_order", "idle_guard", "reorder", "ageing", "balance")
CHOICES = {"yield": ("kernel", "iteration"), "resume": ("etc", "fifo"), "affinity": ("boundary", "strict"),
           "pressure": ("text", "intensity", "off"), "tie": ("etc", "longest")}
NUMBERS = {"t_starve_s": 30.0, "contexts": 8, "ctx_switch_us": 0.0, "epsilon": 0.1, "batch_cap": 8, "max_batch": 32, "gap_ms": 100.0,
           "tau_low": 0.4, "tau_high": 0.7, "t_age_s": 60.0, "balance_gain": 0.1, "igpu_cap": 1.0, "igpu_cap_s": 5.0, "shed": False,
           "shed_queue": 64, "shed_wait_s": 300.0, "hang_s": 1.0, "hang_factor": 10.0}
NOTHING = SimpleNamespace(t_ns=0, bytes_per_s=0.0, flop_per_byte=0.0, watts=0.0, memory_bound=False)


def age(r):
    return r.arrival_ns, r.id


class AgentXpuV1(Plain):
    name = "agent-xpu-v1-judge"
    once = False
    flags = ("busy_poll",)
    needs = ("spans", "row_split", "kv_move", "kernel_yields", "npu", "igpu")
    params = (tuple(Param(k, True, "") for k in FLAGS) + tuple(Param(k, v[0], "", choices=v) for k, v in CHOICES.items()) +
              tuple(Param(k, v, "", 0, 1e9) for k, v in NUMBERS.items()) + GAP + FLASH)

    def init(self):
        self.npu, self.igpu = (next(d.index for d in self.machine.devices if d.kind == k) for k in ("npu", "igpu"))
        self.device, self.chunk, self.mem = self.igpu, self.machine.devices[self.npu].chunk_rows, {}
        self.queue, self.between = {"reactive": [], "proactive": []}, {"reactive": [], "proactive": []}  # prompts; sequences
        self.contexts = []                             # proactive prefills that have a pass, in the order in which they began
        self.rt = self.primary = self.aged = None      # prefills: reactive; proactive and due; of age, next to a reactive one
        self.batch, self.batch_refused, self.gap_used, self.short = None, None, False, -1
        self.active, self.last = {}, {}                # by device: what runs, and the last pass
        self.looks = {self.npu: 0, self.igpu: 0}       # when a kernel is next looked after
        self.share, self.share_ns = 0.0, 0             # of the iGPU's time that is busy
        self.gap, self.flash = Gaps(self, self.context_ns), Flash(self, self.context_ns)

    # annotations
    def ask(self, shape, op, d, rows):
        if not rows:
            return NOTHING
        key = shape, op, d, rows
        if key not in self.mem:
            e = self.estimate(*key)
            self.mem[key] = NOTHING if isinstance(e, str) else e
        return self.mem[key]

    def shape(self, r):
        return r.data.p.shape if r.data.p else shape_of([Segment(r, "prefill", r.prefill_left)])

    def etc(self, r):
        """Of the kernels that are left, at their default mapping."""
        return self.mapped_ns(self.shape(r), r.data.p.op if r.data.p else 0)

    def context_ns(self, model, tokens):
        return self.mapped_ns(Shape(tokens, 1, 1, tokens, tokens * (tokens + 1) // 2, tokens, tokens, model), 0)

    def mapped_ns(self, w, at):
        llm = self.models[w.model]
        t = self.ask(w, "head", self.igpu, 1).t_ns
        for i, op in enumerate(llm.layer):
            chunks = 0 if op == "mha" else w.rows // self.chunk * self.chunk
            left = sum(1 for layer in range(llm.n_layers) if layer * len(llm.layer) + i >= at)
            t += left * (self.ask(w, op, self.npu, chunks).t_ns + self.ask(w, op, self.igpu, w.rows - chunks).t_ns)
        return t

    # hooks
    def request_arrived(self, r):
        r.data = self.context(self.now_ns)
        self.gap.arrived(r)
        if not self.gap.holds(r):
            self.queue[r.cls].append(r)

    def kv_moved(self, r):
        if self.flash.moved(r):
            (self.between if r.state == "decode" else self.queue)[r.cls].append(r)

    def context(self, pending):
        return SimpleNamespace(p=None, planned=None, rows={}, on={}, ready=0, pending=pending, refused=None, not_before=0, stopped=False, moved=False,
                               hung=(None, None))

    def leave(self, r):
        for q in (self.queue[r.cls], self.between[r.cls], self.contexts, self.gap.back, self.flash.there):
            if r in q:
                q.remove(r)

    request_cancelled = leave

    def launch_done(self, x):
        a, self.last[x.device] = self.active.pop(x.device), x.pass_.id
        if x.device == self.igpu:
            self.count_busy(True)
        if a.r is not None:
            c = a.r.data
            del c.on[x.device]
            if x.outcome != "done":
                c.planned, c.rows = None, {}
                if a.r is not self.rt:
                    c.stopped, c.pending = True, self.now_ns

    def count_busy(self, busy):
        f = math.exp(-(self.now_ns - self.share_ns) / 1e9 / self.param["igpu_cap_s"])
        self.share, self.share_ns = self.share * f + (1 - f if busy else 0.0), self.now_ns

    def pass_done(self, p):
        if p is self.batch:
            self.batch = None
            self.gap_used = self.gap_used and not self.reactive(p)
        else:
            r = p.segments[0].request
            self.leave(r)
            self.rt, self.primary, self.aged = (None if x is r else x for x in (self.rt, self.primary, self.aged))
            r.data.p, r.data.planned, r.data.rows = None, None, {}
        for r in (s.request for s in p.segments):
            if r.state == "decode":
                self.between[r.cls].append(r)
            self.gap.finished(r)

    def reactive(self, p):
        return any(s.request.cls == "reactive" for s in p.segments)

    def users_decode(self):
        return bool(self.between["reactive"]) or (self.batch is not None and self.reactive(self.batch))

    # memory
    def nothing_holds(self):
        return self.rt is None and self.batch is None and not self.contexts and not self.between["reactive"] and not self.between["proactive"]

    def growth(self):
        return 64 * ((len(self.batch.segments) if self.batch else 0) + len(self.between["reactive"]) + len(self.between["proactive"]))

    def may_begin(self, r):
        need = r.prefill_left + r.kv_state_tokens + (self.kv_cached_tokens([r])[0] if self.is_cached(r) else 0) + self.growth()
        return not self.flash.there and (self.nothing_holds() or (self.short != self.epoch and need <= self.kv_free_tokens))

    def begin(self, r):
        if r.cls == "proactive" and not self.may_begin(r):
            return False
        p = self.form([Segment(r, "prefill", r.prefill_left)])
        while not self.sync():
            if r.cls == "proactive" or not self.make_room(False):
                return False
            p = self.form([Segment(r, "prefill", r.prefill_left)])
        self.leave(r)
        if r.cls == "proactive":
            self.contexts.append(r)
        r.data.p = p
        return True

    def make_room(self, for_decode):
        """Prefills go first, the last begun of them first; then the youngest sequence, while there are two."""
        self.short = self.epoch
        if self.flash.out:
            return False
        for r in reversed(self.contexts):
            if r.data.p.state == "ready":
                self.cancel(r.data.p)
                self.sync()
                self.primary, self.aged = (None if x is r else x for x in (self.primary, self.aged))
                self.again(r, r.data.pending)
                return True
        for cls in ("proactive", "reactive") if for_decode else ("proactive",):
            if self.between[cls] and len(self.between["reactive"]) + len(self.between["proactive"]) > 1:
                r = max(self.between[cls], key=age)
                if self.flash.takes(r):
                    self.leave(r)
                else:
                    self.again(r, self.now_ns)
                return True
        return False

    def again(self, r, pending):
        self.leave(r)
        r.data = self.context(pending)
        if not r.left:
            if r.kv_tokens:
                self.kv(r, "nowhere")
                self.sync()
            self.queue[r.cls].append(r)

    # which prefills
    def old(self, r):
        return self.param["ageing"] and self.now_ns - r.arrival_ns >= round(self.param["t_age_s"] * E9)

    def resumes(self, r):
        """A.4."""
        if self.param["resume"] == "fifo":
            return age(r)
        starved = self.now_ns - r.data.pending > self.param["t_starve_s"] * E9
        return (0, r.data.pending) + age(r) if starved else (1, self.etc(r)) + age(r)

    def choose(self):
        users = sorted(self.queue["reactive"], key=age)
        if self.rt is None and users and (self.param["preempt"] or self.primary is None) and self.begin(users[0]):
            self.rt = users[0]
            if self.primary:
                self.primary.data.pending, self.primary = self.now_ns, None
        fresh = self.queue["proactive"] if len(self.contexts) < self.param["contexts"] else []
        if self.rt:
            old = [r for r in self.contexts + fresh if self.old(r)] if self.aged is None else []
            r = min(old, key=age, default=None)
            if r and (r.data.p or self.begin(r)):
                self.aged = r
            return
        self.primary, self.aged = self.primary or self.aged, None
        if self.primary is None:
            r = min(self.contexts + fresh, key=self.resumes, default=None)
            if r and not r.data.p and not self.begin(r):
                r = min(self.contexts, key=self.resumes, default=None)
            self.primary = r

    # where their kernels go
    def npu_rows(self, r, op, rows):
        if op not in ("qkv", "ffn") or r is self.aged:
            return 0
        if r is self.rt and self.aged:
            return rows
        g, w = self.chunk, r.data.p.shape
        if r is self.rt and self.param["elastic"] and not self.users_decode():
            end = lambda m: max(self.ask(w, op, self.npu, m * g).t_ns, self.ask(w, op, self.igpu, rows - m * g).t_ns)
            return min(range(rows // g + 1), key=lambda m: (end(m), -m)) * g
        return rows // g * g

    def place(self, r):
        c, p = r.data, r.data.p
        if c.moved and c.rows.get(self.igpu) and self.igpu not in c.on and self.npu not in self.active:
            c.planned = None  # back again
        if p.op < p.n_ops and not p.n_launches and c.planned != p.op:
            npu = self.npu_rows(r, p.op_kind(), p.rows_todo)
            if c.hung[0] != p.op:
                c.hung = p.op, None
            if p.op_kind() in ("qkv", "ffn") and c.hung[1] is not None:
                npu = 0 if c.hung[1] == self.npu else p.rows_todo
            c.planned, c.rows, c.ready, c.moved = p.op, {self.npu: npu, self.igpu: p.rows_todo - npu}, self.now_ns, False

    def busy_for(self, d):
        a = self.active.get(d)
        return max(0, (a.x.start_ns if a.x.state == "running" else self.now_ns) + a.t - self.now_ns) if a else 0

    def window(self, d):
        """Until the reactive request next needs the device: through its ops that need the other alone."""
        if self.rt is None:
            return 0 if d == self.igpu and self.users_decode() else math.inf
        c, p, other = self.rt.data, self.rt.data.p, self.npu + self.igpu - d
        if c.rows.get(d):
            return 0
        t = self.busy_for(other)
        if p.op < p.n_ops:
            t += self.ask(p.shape, p.op_kind(), other, c.rows.get(other, 0)).t_ns
        for op in range(p.op + 1, p.n_ops):
            kind = p.op_kind(op)
            rows = p.shape.logit_rows if kind == "head" else p.shape.rows
            npu = self.npu_rows(self.rt, kind, rows)
            if (npu if d == self.npu else rows - npu):
                return t
            t += self.ask(p.shape, kind, other, rows).t_ns
        return math.inf if d == self.npu else t

    def move(self, r):
        """A.8: the NPU's rows to an idle iGPU."""
        c, p = r.data, r.data.p
        waits = self.batch or self.between["reactive"] or self.between["proactive"]
        if (not self.param["balance"] or not c.rows.get(self.npu) or c.on or self.npu not in self.active or self.igpu in self.active or waits or
                self.share > self.param["igpu_cap"]):
            return
        npu, igpu = self.ask(p.shape, p.op_kind(), self.npu, c.rows[self.npu]), self.ask(p.shape, p.op_kind(), self.igpu, sum(c.rows.values()))
        over = self.pressure() + igpu.bytes_per_s / self.machine.ddr_peak_bytes_per_s - 1
        if igpu.t_ns * (1 + max(0.0, over)) < (1 - self.param["balance_gain"]) * (self.busy_for(self.npu) + npu.t_ns):
            c.rows, c.moved = {self.npu: 0, self.igpu: sum(c.rows.values())}, True

    # kernels
    def annotate(self, k, e):
        other = self.active.get(self.npu + self.igpu - k.d)
        work = e.bytes_per_s * e.flop_per_byte
        k.t, k.bytes, k.bound, k.per_joule = e.t_ns, e.bytes_per_s, e.memory_bound, work / e.watts if e.watts > 0 else work
        pair = self.pressure() + k.bytes / self.machine.ddr_peak_bytes_per_s
        k.complements = other is not None and other.bound != k.bound and (not k.bound or pair <= self.param["tau_high"])
        return k

    def kernel(self, r, d):
        """The share of its op that waits for a device."""
        self.place(r)
        c = r.data
        if not c.rows.get(d) or d in c.on:
            return None
        if c.stopped:
            c.stopped, c.not_before = False, self.now_ns + round(self.param["ctx_switch_us"] * 1000)
        if self.now_ns < c.not_before:
            self.set_timer(c.not_before)
            return None
        k = SimpleNamespace(r=r, d=d, reactive=r.cls == "reactive" or r is self.aged, consumes=self.last.get(d) == c.p.id, rows=c.rows[d],
                            ready=c.ready if c.refused is None else min(c.ready, c.refused), path=self.etc(r))
        return self.annotate(k, self.ask(c.p.shape, c.p.op_kind(), d, k.rows))

    def layer(self, w, fused):
        """The average of a layer of a decode."""
        if fused:
            return self.ask(w, "layer", self.igpu, w.rows)
        es = [(op, self.ask(w, op, self.igpu, w.rows)) for op in self.models[w.model].layer]
        t, b, f = sum(e.t_ns for _, e in es), 0.0, 0.0
        for _, e in es:
            b += e.bytes_per_s * (e.t_ns / 1e9)
            f += e.bytes_per_s * (e.t_ns / 1e9) * e.flop_per_byte
        return SimpleNamespace(t_ns=t, bytes_per_s=b / (t / 1e9) if t else 0.0, flop_per_byte=f / b if b else 0.0, watts=es[-1][1].watts,
                               memory_bound=all(op == "mha" or e.memory_bound for op, e in es))

    def compose(self):
        """Reactive sequences; proactive ones by arrival, up to B_max."""
        users, others = (sorted(self.between[cls], key=age) for cls in ("reactive", "proactive"))
        batch = [r for r in users if r.model == users[0].model]
        others = [r for r in others if r.model == (batch or others)[0].model]
        if not batch or not self.param["intra_backfill"]:
            return batch or others[:self.param["max_batch"]]
        shape = lambda rs: shape_of([Segment(r, "decode", 1) for r in rs])
        time = lambda rs: self.pass_ns(shape(rs), len(rs) == 1)
        most = (1 + self.param["epsilon"]) * time(batch)
        for r in others:
            if len(batch) >= self.param["batch_cap"] or time(batch + [r]) > most:
                break
            batch = batch + [r]
        return batch

    def decode(self, layers=None):
        """What is left of the iteration that has begun, or would begin; or of so many layers of it."""
        if self.batch:
            p = self.batch
            if p.state != "ready" or p.op == p.n_ops:
                return None
            w, fused, per, at, ops = p.shape, p.fused_layers, len(p.layer), p.op, p.n_ops
        else:
            batch = self.compose()
            if not batch:
                return None
            w, fused = shape_of([Segment(r, "decode", 1) for r in batch]), len(batch) == 1
            per, at = 1 if fused else len(self.models[w.model].layer), 0
            ops = per * self.models[w.model].n_layers + 1
        e = self.layer(w, fused)
        n = left = ops - at
        if layers is not None:
            n = layers(e.t_ns) * per
            n = min(n - (at % per if n else 0), left - 1)
            if n == 0:
                return None
        k = SimpleNamespace(r=None, d=self.igpu, reactive=self.users_decode(), n_ops=n)
        self.annotate(k, e)
        k.t = e.t_ns * (n - (n == left)) // per + (self.ask(w, "head", self.igpu, w.logit_rows).t_ns if n == left else 0)
        return k

    # A.6
    def pressure(self):
        return sum(self.active[d].bytes for d in sorted(self.active)) / self.machine.ddr_peak_bytes_per_s

    def refuses(self, k, refused, active):
        rule, peak = self.param["pressure"], self.machine.ddr_peak_bytes_per_s
        if rule == "off" or (not active and self.param["idle_guard"]):
            return False
        pair = k.bound and any(a.bound for a in active.values())
        if rule == "intensity":
            return pair and not k.reactive
        p = sum(active[d].bytes for d in sorted(active)) / peak
        if p + k.bytes / peak > self.param["tau_high"]:
            return True
        starved = refused is not None and self.now_ns - refused > self.param["t_starve_s"] * E9
        return not (k.reactive or starved or p < self.param["tau_low"]) and (pair or p >= self.param["tau_high"])

    def put(self, k):
        """Launches a kernel that Algorithm 1 lets pass."""
        if k.d in self.active or not self.free_slots[k.d]:
            return False
        refused = k.r.data.refused if k.r else self.batch_refused
        refuses = self.refuses(k, refused, self.active)
        refused = (self.now_ns if refused is None else refused) if refuses else None
        if k.r:
            k.r.data.refused = refused
        else:
            self.batch_refused = refused
        if refuses:
            return False
        if k.r is None:
            if self.batch is None and not self.form_batch():
                return False
            x = self.launch(self.batch, k.d, n_ops=k.n_ops, yield_="kernel")
        else:
            x = k.r.data.on[k.d] = self.launch(k.r.data.p, k.d, n_ops=1, rows=k.rows, yield_="kernel")
            k.r.data.rows[k.d] -= k.rows
        self.active[k.d] = SimpleNamespace(x=x, r=k.r, since=self.now_ns, hung=False, reactive=k.reactive, bound=k.bound, bytes=k.bytes, t=k.t, fits=self.rt is not None)
        return True

    def form_batch(self):
        """False where another batch than the chosen one was formed."""
        chosen = batch = self.compose()
        while batch:
            self.batch = self.form([Segment(r, "decode", 1) for r in batch], len(batch) == 1)
            if self.sync():
                for r in batch:
                    self.between[r.cls].remove(r)
                return len(batch) == len(chosen)
            self.batch = None
            if not self.make_room(True):
                return False
            batch = self.compose()
        return False

    # what runs
    def stop(self, d):
        a = self.active.get(d)
        if a and not a.x.stop_requested and self.param["preempt"]:
            self.preempt(a.x)

    def make_way(self, k):
        """For a reactive kernel, unless it would be refused on an idle machine."""
        alone = self.param["pressure"] != "text" or self.param["idle_guard"] or k.bytes <= self.param["tau_high"] * self.machine.ddr_peak_bytes_per_s
        for d in sorted(self.active) if alone else ():
            if not self.active[d].reactive:
                self.stop(d)

    def rt_wants_igpu(self):
        return self.rt is not None and self.rt.data.rows.get(self.igpu, 0) > 0

    def reactive_prefill(self):
        for d in (self.npu, self.igpu):
            k = self.kernel(self.rt, d) if self.rt else None
            if k and d in self.active:
                self.stop(d)
            elif k and not self.put(k):
                self.make_way(k)
        for d in (self.npu, self.igpu):  # what would still run when it is needed
            a = self.active.get(d)
            if self.rt and a and not a.reactive and not a.fits and self.param["duration"] and self.busy_for(d) > self.window(d):
                self.stop(d)

    def reactive_decode(self):
        if not self.users_decode() or self.igpu in self.active or self.rt_wants_igpu():
            return
        if self.param["affinity"] == "boundary" and not self.gap_used and (self.batch is None or self.batch.op == 0):
            for r in self.contexts:
                k = self.kernel(r, self.igpu)
                if k and k.t <= round(self.param["gap_ms"] * 1e6) and self.put(k):
                    self.gap_used = True
                    return
        k = self.decode()
        if k and not self.put(k):
            self.make_way(k)

    def due(self):
        """A.10."""
        ks = [self.kernel(self.primary, self.npu)] if self.primary else []
        free = self.window(self.igpu) > 0 and self.igpu not in self.active
        if free and self.primary:
            self.move(self.primary)
            ks.append(self.kernel(self.primary, self.igpu))
        for k in sorted(filter(None, ks), key=lambda k: k.ready):
            self.put(k)
        if free and not self.users_decode() and self.igpu not in self.active:
            k = self.decode()
            if k:
                self.put(k)
        a = self.active.get(self.igpu)
        if a and a.r is None and not a.reactive and not a.x.stop_requested and self.primary and self.param["yield"] == "kernel":
            k = self.kernel(self.primary, self.igpu)
            if k and not self.refuses(k, k.r.data.refused, {d: x for d, x in self.active.items() if d != self.igpu}):
                self.preempt(a.x)

    def aged_prefill(self):
        if self.aged is None or self.rt_wants_igpu() or self.igpu in self.active:
            return
        c = self.aged.data
        if self.igpu not in c.on:
            c.rows = {self.npu: 0, self.igpu: sum(c.rows.values())}
        k = self.kernel(self.aged, self.igpu)
        if k:
            self.put(k)

    # A.5, A.7
    def order(self, k):
        energy = -k.per_joule if self.param["energy_order"] else 0
        seldom = (not k.consumes, not k.complements) if self.param["reorder"] else ()
        return seldom + (energy, k.path if self.param["tie"] == "etc" else -k.path) + age(k.r)

    def fit(self, k, window):
        """Cut to what ends in the window: whole chunks of the NPU."""
        if k.t <= window or not self.param["duration"]:
            return window > 0
        chunks = -(-k.rows // self.chunk)
        fit = window // max(1, k.t // chunks)
        if k.d != self.npu or fit == 0:
            return False
        k.rows = min(k.rows, fit * self.chunk)
        p = k.r.data.p
        self.annotate(k, self.ask(p.shape, p.op_kind(), self.npu, k.rows))
        return k.t <= window

    def fill_begun(self, d, window):
        ks = []
        for r in self.contexts:
            if r is not self.primary and r is not self.aged:
                self.place(r)
                if d == self.igpu:
                    self.move(r)
                k = self.kernel(r, d)
                if k and self.fit(k, window):
                    ks.append(k)
        return any(self.put(k) for k in sorted(ks, key=self.order))

    def fill_fresh(self, d, window):
        """The smallest ETC; for the NPU the first with a whole chunk, where the smallest has none."""
        r = min(self.queue["proactive"], key=lambda r: (self.etc(r),) + age(r), default=None)
        if r and d == self.npu and r.prefill_left < self.chunk:
            r = min((r for r in self.queue["proactive"] if r.prefill_left >= self.chunk), key=age, default=None)
        if r is None or (r.prefill_left >= self.chunk) != (d == self.npu) or len(self.contexts) >= self.param["contexts"] or not self.begin(r):
            return False
        k = self.kernel(r, d)
        return bool(k) and self.fit(k, window) and self.put(k)

    def fill_decode(self, window):
        if self.rt is None or self.users_decode():
            return False
        k = self.decode()
        if k and k.t > window and self.param["duration"]:
            k = self.decode(lambda t: window // t if t else 0)
        return bool(k) and (k.t <= window or not self.param["duration"]) and window > 0 and self.put(k)

    def backfill(self):
        for d in (self.npu, self.igpu) if self.param["inter_backfill"] else ():
            window = self.window(d) if d not in self.active else 0
            if window > 0 and not self.fill_begun(d, window) and not (d == self.igpu and self.fill_decode(window)):
                self.fill_fresh(d, window)

    def shed_newest(self):
        wait = sum(self.etc(r) for r in self.contexts + self.queue["proactive"])
        q = sorted(self.queue["proactive"], key=age)
        while q and (len(q) > self.param["shed_queue"] or wait > round(self.param["shed_wait_s"] * E9)):
            r = q.pop()
            wait -= self.etc(r)
            self.shed(r)
            self.leave(r)

    def watch_kernels(self):
        """One that takes far too long is stopped, or killed, and once goes elsewhere (A.8)."""
        for d, a in sorted(self.active.items()) if self.param["hang_s"] else ():
            at = a.since + max(round(self.param["hang_s"] * E9), round(self.param["hang_factor"] * a.t))
            if a.hung:
                continue
            if self.now_ns < at:
                if self.looks[d] <= self.now_ns or at < self.looks[d]:
                    self.looks[d] = at
                    self.set_timer(at)
                continue
            a.hung = True
            if a.r is not None and a.r.data.hung[1] is None:
                a.r.data.hung = a.r.data.p.op, d
            elif a.r is not None:
                continue
            kills = self.machine.devices[d].can_reset
            self.preempt(a.x, now=kills, discard=kills)

    def watch_age(self):
        for r in self.contexts + self.queue["proactive"] if self.rt and not self.aged and self.param["ageing"] else ():
            at = r.arrival_ns + round(self.param["t_age_s"] * E9)
            if at > self.now_ns:
                self.set_timer(at)

    def schedule(self):
        self.count_busy(self.igpu in self.active)
        if self.param["shed"]:
            self.shed_newest()
        self.gap.schedule()
        self.stages()
        while self.reads_back() or self.nothing_holds() and (any(self.queue.values()) or self.gap.back or self.flash.there) and (
                self.gap.yields() or any(self.gap.evicts(sorted(self.queue[c], key=age)) for c in ("proactive", "reactive"))):
            self.gap.schedule()
            self.stages()
        self.watch_kernels()
        self.watch_age()

    def reads_back(self):
        """A reactive prompt that waits takes memory before."""
        return not self.queue["reactive"] and self.flash.back(self.growth(), self.nothing_holds())

    def stages(self):
        self.choose()
        self.reactive_prefill()
        self.reactive_decode()
        if self.rt is None:
            self.due()
        else:
            self.aged_prefill()
        self.backfill()
