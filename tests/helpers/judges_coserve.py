"""Online and offline work in one iteration (docs/clauses.md E.12, heads of the policies; judges.py)."""
from fractions import Fraction

from judges import DEVICE, E9, Param, Plain, Segment, Shape, known


class Coserve(Plain):
    """Online work first, whatever it takes; then offline work, each piece as large as budget and tokens allow."""
    params = (DEVICE, Param("max_num_seqs", 16, "", 1, 4096),
              Param("max_num_batched_tokens", 512, "", 1, 1000000),
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
                    need = r.prefill_left + r.kv_state_tokens + (self.kv_cached_tokens([r])[0] if r.kv_tokens else 0)
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
    params = Coserve.params + (Param("safepoint", True, ""), Param("ttft_slo_s", 2.0, "", 0, 1e6), Param("tbt_slo_s", 0.2, "", 0, 1e6))

    def init(self):
        super().init()
        self.safe = self.param["safepoint"]

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
