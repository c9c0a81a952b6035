"""Policies by their definitions (docs/clauses.md, heads of policies/*.c, the papers), with plain lists: nothing is kept up to date,
everything is worked out again at each decision. tests/helpers/judged_check.py compares their decisions with those of the policies."""
from xpusim import Policy
from xpusim.policy import Param, Segment, Shape  # what a policy outside the tree has, too

E9 = 1e9


def known(ns):
    """Not everybody has a deadline, or a first token."""
    return ns is not None and 0 <= ns < 9e18


class Plain(Policy):
    once = True
    needs = ("spans", "kv_move")
    yield_ = "pass"
    params = (Param("max_batch", 16, "", 1, 4096), Param("token_budget", 512, "", 1, 1000000),
              Param("class", "rt_first", "", choices=("rt_first", "blind", "rt_alone")))

    def init(self):
        self.device = next(d.index for d in self.machine.devices if d.kind == "igpu")
        self.ready, self.run, self.on, self.asked, self.paused = [], None, None, False, []
        self.mem = {}

    # times
    def many(self, asks):
        todo = [a for a in dict.fromkeys(asks) if a not in self.mem]
        if todo:
            for a, e in zip(todo, self.estimates(todo)):
                self.mem[a] = 0 if isinstance(e, str) else e.t_ns
        return [self.mem[a] for a in asks]

    def pass_ns(self, w, fused, head=True):
        llm = self.models[w.model]
        kinds = ("layer",) if fused else llm.layer
        t = self.many([(w, k, self.device) for k in kinds] + ([(w, "head", self.device)] if head else []))
        return sum(t[:len(kinds)]) * llm.n_layers + (t[-1] if head else 0)

    def prompt_ns(self, r):
        """The rest of its prompt, as one pass."""
        n, k = r.prefill_left, r.kv_tokens
        return self.pass_ns(Shape(n, 1, 1, n, n * k + n * (n + 1) // 2, k + n, k + n, r.model), False) if n and r.state == "queued" else 0

    def token_ns(self, r):
        c = r.length + 1
        return self.pass_ns(Shape(1, 1, 1, 0, c, c, c, r.model), True)

    # hooks
    def request_arrived(self, r):
        self.ready.append(r)

    def request_cancelled(self, r):
        if r in self.ready:
            self.ready.remove(r)

    def launch_done(self, x):
        self.on = None
        if x.outcome == "yielded":
            self.paused.append(self.run)
            self.run = None

    def pass_done(self, p):
        self.run = None
        self.served(p)
        for s in p.segments:
            if not s.request.left:
                self.ready.append(s.request)

    def served(self, p):
        pass

    # order
    def rank(self, r):
        return (self.param["class"] != "blind" and r.cls == "proactive", self.key(r), r.arrival_ns, r.id)

    def fill(self):
        batch, tokens = [], 0
        for r in sorted(self.ready, key=self.rank):
            if len(batch) == self.param["max_batch"] or tokens == self.param["token_budget"]:
                break
            if batch and r.model != batch[0].request.model:
                continue
            if self.param["class"] == "rt_alone" and batch and batch[0].request.cls == "reactive" and r.cls == "proactive":
                break
            n = 1 if r.state == "decode" else min(r.prefill_left, self.param["token_budget"] - tokens)
            batch.append(Segment(r, "decode" if r.state == "decode" else "prefill", n))
            tokens += n
        return batch

    def begin(self, batch):
        for s in batch:
            self.ready.remove(s.request)
        self.run = self.form(batch, len(batch) == 1 and batch[0].role == "decode")

    def put(self):
        self.on = self.launch(self.run, self.device, yield_=self.yield_)
        self.asked = False

    def schedule(self):
        if self.run is None:
            batch = self.fill()
            if batch:
                self.begin(batch)
                self.put()


class Andes(Plain):
    """arXiv 2404.16283: QoE is the area under what the user has read over the area under what he expects (reading from the
    expected first token on, at his speed). Gain: QoE after a time if served less QoE if not; per token of context."""
    name = "andes-judge"
    params = Plain.params + (Param("ttft_s", 1.0, "", 0, 1e6), Param("read_tokens_per_s", 4.8, "", 1e-3, 1e6),
                             Param("horizon_s", 1.0, "", 1e-6, 1e6), Param("per_token", True, ""))

    def init(self):
        super().init()
        self.came = {}  # instants of tokens

    def served(self, p):
        for s, n in zip(p.segments, p.emitted):
            self.came.setdefault(s.request.id, []).extend([self.now_ns] * n)

    def read_until(self, r, now):
        """Tokens read (a fluid at the speed of reading, of what has come)."""
        v, at, read, have = self.param["read_tokens_per_s"], r.arrival_ns + self.param["ttft_s"] * E9, 0.0, 0
        for t in self.came.get(r.id, []) + [now]:
            if t > at:
                read = min(have, read + v * (t - at) / E9)
                at = t
            have += 1
        return read

    @staticmethod
    def area(have, read, v, begin, lead, rate, end):
        """Of the tokens read from begin to end (s from now): `have` are there, more come at `rate` from lead on."""
        t, total = begin, 0.0
        come = have + max(0.0, t - lead) * rate
        while t < end - 1e-15:
            stop = min(end, lead) if t < lead else end
            growth = rate if t >= lead else 0.0
            if read < come - 1e-12:
                slope = v
                if v > growth:
                    stop = min(stop, t + (come - read) / (v - growth))
            else:
                read = come
                slope = min(v, growth)
            d = stop - t
            if d <= 0:
                d = 1e-15
            total += read * d + slope * d * d / 2
            read += slope * d
            come += growth * d
            t += d
        return total

    def key(self, r):
        v, h = self.param["read_tokens_per_s"], self.param["horizon_s"]
        begin = (r.arrival_ns + round(self.param["ttft_s"] * E9) - self.now_ns) / E9
        if begin >= h:
            gain = 0.0
        else:
            have = len(self.came.get(r.id, []))
            read = self.read_until(r, self.now_ns)
            tok, lead = self.token_ns(r) / E9, self.prompt_ns(r) / E9
            b = max(0.0, begin)
            served = self.area(have, read, v, b, lead, 1 / tok, h)
            waits = self.area(have, read, v, b, 1e9, 0.0, h)
            gain = max(0.0, served - waits) / (v * (h - begin) ** 2 / 2)
        return -round(gain, 9) / (r.length if self.param["per_token"] else 1)


class Pantheon(Plain):
    """A model in blocks (layers); at the end of each the earliest deadline goes on; nothing is batched."""
    name = "pantheon-judge"
    yield_ = "layer"
    params = (Param("max_batch", 1, "", 1, 4096), Param("token_budget", 512, "", 1, 1000000),
              Param("class", "rt_alone", "", choices=("rt_first", "blind", "rt_alone")), Param("deadline_s", 30.0, "", 0, 1e9))

    def key(self, r):
        return r.deadline_ns if known(r.deadline_ns) else r.arrival_ns + int(self.param["deadline_s"] * E9)

    def pass_rank(self, p):
        return min(self.rank(s.request)[:2] for s in p.segments)

    def schedule(self):
        top = min((self.rank(r)[:2] for r in self.ready), default=None)
        if self.run is not None:
            if self.on is not None and not self.asked and top is not None and top < self.pass_rank(self.run):
                self.preempt(self.on)
                self.asked = True
            return
        old = min(reversed(self.paused), key=self.pass_rank, default=None)
        if old is not None and (top is None or top >= self.pass_rank(old)):
            self.paused.remove(old)
            self.run = old
            self.put()
        elif top is not None:
            self.begin(self.fill())
            self.put()


class CriticalPath(Plain):
    name = "critical-judge"
    params = Plain.params + (Param("expected_output", 100, "", 1, 1000000), Param("waits", True, ""), Param("jobs", True, ""),
                             Param("slack", True, ""))

    def rest(self, r):
        e = self.param["expected_output"]
        answers = max(1, e - r.generated_tokens) + (e * r.waiters if self.param["waits"] else 0)
        return self.prompt_ns(r) + answers * self.token_ns(r)

    def key(self, r):
        job = (lambda x: x.job_id) if self.param["jobs"] else (lambda x: x.id)
        rest = self.rest(r)
        if r.background and self.param["waits"]:
            return (1, rest)
        path = max(self.rest(x) for x in self.ready if job(x) == job(r) and not (x.background and self.param["waits"]))
        return (0, path + (path - rest if self.param["slack"] else 0))


class Llf(Plain):
    name = "llf-judge"
    params = Plain.params + (Param("ttft_slo_s", 2.0, "", 0, 1e6), Param("tbt_slo_s", 0.2, "", 0, 1e6), Param("proactive_s", 600.0, "", 0, 1e9))

    def key(self, r):
        work = self.prompt_ns(r) if r.state == "queued" else self.token_ns(r)
        if known(r.deadline_ns):
            return r.deadline_ns - work
        if r.cls == "proactive":
            return r.arrival_ns + int(self.param["proactive_s"] * E9) - work
        if not known(r.first_token_ns):
            return r.arrival_ns + (r.ttft_slo_ns if known(r.ttft_slo_ns) else int(self.param["ttft_slo_s"] * E9)) - work
        return r.last_token_ns + (r.tbt_slo_ns if known(r.tbt_slo_ns) else round(self.param["tbt_slo_s"] * E9)) - work


class Coserve(Plain):
    """Online work first, whatever it takes; then offline work, each piece as large as budget and tokens allow."""
    params = (Param("max_num_seqs", 16, "", 1, 4096), Param("max_num_batched_tokens", 512, "", 1, 1000000),
              Param("offline", "budget", "", choices=("budget", "always", "alone")))
    safe = False

    def init(self):
        super().init()
        self.wait = {"reactive": [], "proactive": []}
        self.runs = {"reactive": [], "proactive": []}
        self.n_off = 0

    def request_arrived(self, r):
        self.wait[r.cls].append(r)

    def request_cancelled(self, r):
        for q in list(self.wait.values()) + list(self.runs.values()):
            if r in q:
                q.remove(r)

    def launch_done(self, x):
        self.on = None

    def pass_done(self, p):
        self.run = None
        for s in p.segments:
            if s.request.left:
                self.runs[s.request.cls].remove(s.request)

    def shape(self, batch):
        rows = logits = pre = pairs = read = longest = 0
        for r, role, n in batch:
            end = r.kv_tokens + n
            rows += n
            logits += role == "decode" or n == r.prefill_left
            pre += n if role == "prefill" else 0
            pairs += n * r.kv_tokens + n * (n + 1) // 2
            read += end
            longest = max(longest, end)
        return Shape(rows, logits, len(batch), pre, pairs, read, longest, batch[0][0].model)

    def piece(self, batch, r, budget):
        room = self.param["max_num_batched_tokens"] - sum(n for _, _, n in batch)
        if batch and batch[0][0].model != r.model:
            return 0
        role = "decode" if r.state == "decode" else "prefill"
        most = min(room, 1 if role == "decode" else r.prefill_left)
        if budget is None or most <= 0:
            return max(0, most)
        ok = lambda n: self.predict(self.shape(batch + [(r, role, n)])) <= budget
        if ok(most):
            return most
        low, high = 0, most  # the largest that fits, where a larger one takes longer
        while high - low > 1:
            mid = (low + high) // 2
            low, high = (mid, high) if ok(mid) else (low, mid)
        return low

    def compose(self, limit):
        self.admitted = {"reactive": 0, "proactive": 0}
        batch, seats = [], self.param["max_num_seqs"]

        def add(r, n):
            batch.append((r, "decode" if r.state == "decode" else "prefill", n))

        def runs(cls, state, budget):
            for r in self.runs[cls]:
                if r.state == state and len(batch) < seats:
                    n = self.piece(batch, r, budget)
                    if n:
                        add(r, n)

        def admits(cls, budget, most=1 << 30):
            while self.wait[cls] and most and len(self.runs["reactive"]) + (len(self.runs["proactive"]) if cls == "proactive" else 0) < seats:
                r = self.next_offline() if cls == "proactive" else self.wait[cls][0]
                n = self.piece(batch, r, budget)
                if not n:
                    return
                if cls == "proactive" and self.runs["reactive"] + self.runs["proactive"]:
                    need = r.prefill_left + (self.kv_cached_tokens([r])[0] if r.kv_tokens else 0)
                    if sum(x[2] for x in batch) + need > self.kv_free_tokens:
                        return
                self.wait[cls].remove(r)
                self.runs[cls].append(r)
                self.admitted[cls] += 1
                self.n_off += cls == "proactive"
                add(r, n)
                most -= 1
        runs("reactive", "decode", None)
        runs("reactive", "queued", None)
        admits("reactive", None, limit["reactive"])
        how = self.param["offline"]
        if how == "alone" and batch:
            return batch
        budget = None if how == "always" else self.budget(batch)
        runs("proactive", "decode", budget)
        runs("proactive", "queued", budget)
        admits("proactive", budget, limit["proactive"])
        if not batch:  # somebody must get on
            runs("proactive", "decode", None)
            del batch[1:]
        if not batch:
            runs("proactive", "queued", None)
            admits("proactive", None, min(1, limit["proactive"]))
        return batch

    def next_offline(self):
        return self.wait["proactive"][0]

    def iteration_ns(self, w):
        return self.pass_ns(w, w.sequences == 1 and w.prefill_rows == 0, w.logit_rows > 0) if w.rows else 0

    def schedule(self):
        if self.run is not None and self.on is not None:
            if self.safe and not self.asked and self.wait["reactive"] and all(s.request.cls == "proactive" for s in self.run.segments):
                self.preempt(self.on)
                self.asked = True
            return
        if self.run is not None and self.run.state == "ready":
            self.cancel(self.run)
            self.run = None
        limit = {"reactive": 1 << 30, "proactive": 1 << 30}
        while self.run is None:
            batch = self.compose(limit)
            if not batch:
                return
            self.run = self.form([Segment(*b) for b in batch], len(batch) == 1 and batch[0][1] == "decode")
            if self.sync():
                off = self.safe and all(b[0].cls == "proactive" for b in batch)
                self.on = self.launch(self.run, self.device, yield_="layer" if off else "pass")
                self.asked = False
                return
            self.run = None
            if not self.give_way(limit):
                return

    def refused(self, what):
        pass

    def give_way(self, limit):
        """First what was admitted just now goes back, one less each time; then who was admitted last starts over."""
        for cls in ("proactive", "reactive"):
            n, among = self.admitted[cls], len(self.runs["reactive"]) + len(self.runs["proactive"])
            if n:
                self.wait[cls] = self.runs[cls][-n:] + self.wait[cls]
                del self.runs[cls][-n:]
                self.n_off -= n if cls == "proactive" else 0
                limit[cls] = n - 1
                return True
            if among > 1 and self.runs[cls]:
                r = self.runs[cls].pop()
                if r.kv_tokens:
                    self.kv(r, "nowhere")
                    self.sync()
                self.wait[cls].insert(0, r)
                limit[cls] = 0
                return True
        return False


class Conserve(Coserve):
    name = "conserve-judge"
    safe = True
    params = Coserve.params + (Param("ttft_slo_s", 2.0, "", 0, 1e6), Param("tbt_slo_s", 0.2, "", 0, 1e6))

    def predict(self, w):
        return self.iteration_ns(w)

    def budget(self, batch):
        least = None
        for r, _, _ in batch:
            if known(r.first_token_ns):
                own = r.tbt_slo_ns if known(r.tbt_slo_ns) else round(self.param["tbt_slo_s"] * E9)
            else:
                own = max(0, r.arrival_ns + (r.ttft_slo_ns if known(r.ttft_slo_ns) else round(self.param["ttft_slo_s"] * E9)) - self.now_ns)
            least = own if least is None else min(least, own)
        return least


class Hygen(Coserve):
    name = "hygen-judge"
    params = Coserve.params + (Param("latency_budget_ms", 200.0, "", 0, 1e6), Param("context_tokens", 512, "", 0, 1000000), Param("utility", 0.5, "", 0, 1))

    def profile(self, p, d, model):
        c = self.param["context_tokens"] + 1
        return self.iteration_ns(Shape(p + d, bool(p) + d, bool(p) + d, p, p * (p + 1) // 2 + d * c, p + d * c, max(p, c if d else 0), model))

    def predict(self, w):
        key = ("fit", w.model)
        if key not in self.mem:
            from fractions import Fraction
            at = ((64, 0), (256, 0), (512, 0), (0, 4), (0, 16))
            a = [[Fraction(x) for x in (1, p, p * p, d, d * d, self.profile(p, d, w.model))] for p, d in at]
            for i in range(5):
                k = next(k for k in range(i, 5) if a[k][i])
                a[i], a[k] = a[k], a[i]
                a[i] = [x / a[i][i] for x in a[i]]
                for k in range(5):
                    if k != i:
                        a[k] = [x - a[k][i] * y for x, y in zip(a[k], a[i])]
            self.mem[key] = [row[5] for row in a]
        p, d = w.prefill_rows, w.rows - w.prefill_rows
        t = sum(c * x for c, x in zip(self.mem[key], (1, p, p * p, d, d * d)))
        return round(t) if t > 0 else 0

    def budget(self, batch):
        return round(self.param["latency_budget_ms"] * 1e6)

    def next_offline(self):
        u, n = self.param["utility"], self.n_off
        q = self.wait["proactive"]
        if int((n + 1) * u) > int(n * u):
            return min(q, key=lambda r: (-r.kv_tokens, r.arrival_ns, r.id))
        return q[0]
