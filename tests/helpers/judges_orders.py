"""Orders over iterations (judges.py) by their definitions: docs/clauses.md E.5 to E.23, heads of policies/*.c, papers."""
import math
from statistics import NormalDist
from types import SimpleNamespace

from judges import E9, Param, Plain, axes, known


class Mlfq(Plain):
    """FastServe: levels of doubled quanta. Who was served or promoted is the first of its level, the last of a batch before others."""
    name = "mlfq-judge"
    params = Plain.params + (Param("q0_ms", 100.0, "", 1e-3, 1e6), Param("skip_join", True, ""), Param("starve_s", 3.0, "", 0, 1e9),
                             Param("promote_every", 1000, "", 1, 1000000000), Param("to_front", True, ""))

    def init(self):
        super().init()
        self.level, self.used, self.since, self.seat, self.seats, self.iterations = {}, {}, {}, {}, 0, 0

    def quantum(self, level):
        return self.param["q0_ms"] * 1e6 * 2 ** level

    def front(self, r):
        self.seats += 1
        self.seat[r.id] = -self.seats if self.param["to_front"] else 0

    def request_arrived(self, r):
        super().request_arrived(r)
        self.level[r.id], self.used[r.id], self.since[r.id], self.seat[r.id] = 0, 0, r.arrival_ns, 0
        while self.param["skip_join"] and self.prompt_ns(r) > self.quantum(self.level[r.id]):
            self.level[r.id] += 1

    def served(self, p, ns):
        self.iterations += 1
        for s in p.segments:
            i = s.request.id
            self.used[i] += ns
            if self.used[i] > self.quantum(self.level[i]):
                self.level[i] += 1
                self.used[i] = 0
            self.since[i] = self.now_ns
            self.front(s.request)

    def refresh(self):
        if self.iterations >= self.param["promote_every"]:
            self.iterations = 0
            for r in sorted((r for r in self.requests.values() if not r.pass_), key=lambda r: (self.since[r.id], r.arrival_ns, r.id)):
                if self.now_ns - self.since[r.id] >= self.param["starve_s"] * E9 and self.level[r.id] > 0:
                    self.level[r.id], self.used[r.id] = 0, 0
                    self.front(r)

    def key(self, r):
        return self.level[r.id], self.seat[r.id]


class Prema(Plain):
    """Tokens: priority times waiting over isolated time. Whoever has those of the threshold is a candidate; the shortest goes first."""
    name = "prema-judge"
    params = Plain.params + (Param("reactive_priority", 9.0, "", 0, 1000), Param("proactive_priority", 1.0, "", 0, 1000),
                             Param("expected_output", 100, "", 1, 1000000))

    def init(self):
        super().init()
        self.came, self.got, self.alone, self.tokens, self.threshold = {}, {}, {}, {}, 1

    def request_arrived(self, r):
        super().request_arrived(r)
        self.came[r.id], self.got[r.id], self.alone[r.id] = r.arrival_ns, 0, self.rest(r)
        self.tokens[r.id] = self.earned(r)

    def served(self, p, ns):
        for s in p.segments:
            self.got[s.request.id] += ns

    def rest(self, r):
        return self.prompt_ns(r) + max(1, self.param["expected_output"] - r.generated_tokens) * self.token_ns(r)

    def refresh(self):
        """When nobody is being served; who is in a pass that was stopped has what he had when it began."""
        if self.run is None:
            for r in self.requests.values():
                self.tokens[r.id] = self.tokens[r.id] if r.pass_ else self.earned(r)
            most = max((self.tokens[i] for i in self.requests), default=0)
            self.threshold = next((t for t in (9, 3, 1) if t <= most), 1)

    def earned(self, r):
        return self.param[r.cls + "_priority"] * (1 + (self.now_ns - self.came[r.id] - self.got[r.id]) / self.alone[r.id])

    def key(self, r):
        return self.tokens[r.id] < self.threshold, self.rest(r)


class Autellix(Plain):
    """A call inherits what its program (client) got: in all calls, or on the longest path. Queues of attained service."""
    name = "autellix-judge"
    params = Plain.params + (Param("mode", "plas", "", choices=("plas", "atlas")), Param("t0_s", 1.0, "", 1e-6, 1e6),
                             Param("beta", 8.0, "", 0, 1e9))

    def init(self):
        super().init()
        self.got, self.waited, self.calls = {}, {}, {}  # of programs; of calls

    def request_arrived(self, r):
        super().request_arrived(r)
        got = self.got.get(r.client_id, 0)
        queue = sum(got >= 2 * b * self.param["t0_s"] * E9 for b in (1, 2, 4, 8, 16, 32, 64))
        self.calls[r.id] = SimpleNamespace(inherits=got, waited=self.waited.get(r.client_id, 0), queue=queue, used=0, got=0, since=r.arrival_ns, own=0)

    def served(self, p, ns):
        for s in p.segments:
            c = self.calls[s.request.id]
            c.got, c.own, c.used = c.got + ns, c.own + ns, c.used + ns
            if c.used > self.param["t0_s"] * E9 * 2 ** c.queue and c.queue < 7:
                c.queue, c.used = c.queue + 1, 0
            if s.request.left:
                self.over(s.request)

    def request_cancelled(self, r):
        super().request_cancelled(r)
        self.over(r)

    def pass_done(self, p):
        super().pass_done(p)
        for s in p.segments if p.state == "cancelled" else []:
            self.over(s.request)

    def over(self, r):
        i, c = r.client_id, self.calls[r.id]
        self.waited[i] = self.waited.get(i, 0) + self.now_ns - r.arrival_ns - c.got
        own = c.got if self.param["mode"] == "plas" else max(0, c.inherits + c.got - self.got.get(i, 0))
        self.got[i] = self.got.get(i, 0) + own

    def refresh(self):
        for r in self.ready:
            c = self.calls[r.id]
            due = c.since + math.ceil(c.own + self.param["beta"] * (c.inherits + c.own) - c.waited)
            if c.queue and due <= self.now_ns:
                c.queue = c.used = c.own = 0
                c.since = max(c.since, due)

    def key(self, r):
        return self.calls[r.id].queue


class ProgramFcfs(Plain):
    name = "program-judge"

    def init(self):
        super().init()
        self.first = {}

    def request_arrived(self, r):
        super().request_arrived(r)
        self.first.setdefault(r.session_id, r.arrival_ns)

    def key(self, r):
        return self.first[r.session_id]


class Edf(Plain):
    name = "edf-judge"
    params = Plain.params + (Param("ttft_slo_s", 2.0, "", 0, 1e6), Param("tbt_slo_s", 0.2, "", 0, 1e6), Param("proactive_s", 600.0, "", 0, 1e9))

    def key(self, r):
        if known(r.deadline_ns):
            return r.deadline_ns
        if r.cls == "proactive":
            return r.arrival_ns + int(self.param["proactive_s"] * E9)
        if not known(r.first_token_ns):
            return r.arrival_ns + (r.ttft_slo_ns if known(r.ttft_slo_ns) else int(self.param["ttft_slo_s"] * E9))
        return r.last_token_ns + (r.tbt_slo_ns if known(r.tbt_slo_ns) else round(self.param["tbt_slo_s"] * E9))


class Llf(Edf):
    name = "llf-judge"
    grows = 1

    def key(self, r):
        return super().key(r) - (self.prompt_ns(r) if r.state == "queued" else self.token_ns(r))


class Sjf(Plain):
    name = "sjf-judge"

    def key(self, r):
        return r.input_tokens


def mixed(*numbers):
    """sim/base/rng.h: a key of numbers, by splitmix64."""
    z = 0
    for x in numbers:
        z = ((z ^ x) + 0x9E3779B97F4A7C15) % 2**64
        z = (z ^ z >> 30) * 0xBF58476D1CE4E5B9 % 2**64
        z = (z ^ z >> 27) * 0x94D049BB133111EB % 2**64
        z ^= z >> 31
    return z


class Srpt(Plain):
    """The rest of the prompt and of the answer, which an oracle knows, or with an error that is 1 in the mean; whoever has produced a
    share of it stays."""
    name = "srpt-judge"
    grows = -1
    flags = ("oracle",)
    params = Plain.params + (Param("limit", 1.0, "", 0, 1), Param("sigma", 0.0, "", 0, 3), Param("draw", 0, "", 0, 1e9),
                             Param("run_seed", 1, "", 0, 1e9))

    def init(self):
        super().init()
        self.answer, name = {}, 0xCBF29CE484222325
        for letter in b"srpt\0":  # FNV-1a: its draws are those of its name
            name = (name ^ letter) * 0x100000001B3 % 2**64
        self.key_of_draws = mixed(self.param["run_seed"], 12, name, 0) >> 11

    def request_arrived(self, r):
        super().request_arrived(r)
        u = (mixed(mixed(self.key_of_draws, 12, r.id, 1 + self.param["draw"])) >> 11) + 0.5
        sigma = self.param["sigma"]
        self.answer[r.id] = self.oracle_output_tokens([r])[0] * math.exp(sigma * NormalDist().inv_cdf(u / 2**53) - sigma ** 2 / 2)

    def key(self, r):
        if r.generated_tokens and self.param["limit"] < 1 and r.generated_tokens >= self.param["limit"] * self.answer[r.id]:
            return -1
        left = max(1, math.floor(self.answer[r.id] - r.generated_tokens + 0.5)) - (r.state == "queued")  # the end of a prompt gives a token
        return self.prompt_ns(r) + left * self.token_ns(r)


class Vtc(Plain):
    """Counters of service decide who is admitted; whoever runs stays ahead, in order of admission."""
    name = "vtc-judge"
    params = Plain.params + (Param("w_in", 1.0, "", 0, 1000), Param("w_out", 2.0, "", 0, 1000), Param("reactive_weight", 1.0, "", 0.001, 1000),
                             Param("lift", True, ""))

    def init(self):
        super().init()
        self.counter, self.seat, self.seats, self.paid = {}, {}, 0, set()

    def charge(self, r, service):
        self.counter[r.client_id] += service / (self.param["reactive_weight"] if r.cls == "reactive" else 1)

    def request_arrived(self, r):
        queued = {x.client_id for x in self.ready if x.id not in self.seat}
        own = self.counter.setdefault(r.client_id, 0)
        if self.param["lift"] and queued and r.client_id not in queued:
            self.counter[r.client_id] = max(own, min(self.counter[c] for c in queued))
        super().request_arrived(r)

    def served(self, p, ns):
        for s, n in zip(p.segments, p.emitted):
            self.charge(s.request, self.param["w_out"] * n)

    def lose(self, r):
        super().lose(r)
        self.seat.pop(r.id, None)

    def order(self):
        left = self.welcome()
        while left:
            r = min(left, key=self.rank)
            left.remove(r)
            yield r
            if any(s.request is r for s in self.filling):
                self.admit(r)

    def back(self, r):
        """Who is read back from flash has been admitted."""
        back = super().back(r)
        if back:
            self.admit(r)
        return back

    def begin(self, batch, finish=False):
        for s in batch if finish else []:  # by itself
            self.admit(s.request)
        super().begin(batch, finish)
        for r in (s.request for s in batch):  # who found no memory and holds no KV queues again
            if not r.pass_ and not r.kv_tokens:
                self.seat.pop(r.id, None)

    def admit(self, r):
        if r.id not in self.seat:
            self.seats += 1
            self.seat[r.id] = self.seats
            if r.id not in self.paid:
                self.paid.add(r.id)
                self.charge(r, self.param["w_in"] * (r.input_tokens - r.reused_tokens))

    def rank(self, r):
        stays = r.id in self.seat and self.param["class"] in ("rt_first", "blind")
        return (0 if stays else self.place(r)[0], self.key(r), r.arrival_ns, r.id)

    def key(self, r):
        return (0, self.seat[r.id]) if r.id in self.seat else (1, self.counter[r.client_id])


class Andes(Plain):
    """arXiv 2404.16283: QoE is the area under what the user has read over the area under what he expects (reading from the
    expected first token on, at his speed). Gain: QoE after a time if served less QoE if not; per token of context."""
    name = "andes-judge"
    params = Plain.params + (Param("ttft_s", 1.0, "", 0, 1e6), Param("read_tokens_per_s", 4.8, "", 1e-3, 1e6),
                             Param("horizon_s", 1.0, "", 1e-6, 1e6), Param("per_token", True, ""))

    def init(self):
        super().init()
        self.came = {}  # instants of tokens

    def served(self, p, ns):
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
    params = axes(1, "rt_alone", "layer") + (Param("deadline_s", 30.0, "", 0, 1e9),)

    def key(self, r):
        return r.deadline_ns if known(r.deadline_ns) else r.arrival_ns + int(self.param["deadline_s"] * E9)


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
        path = max(self.rest(x) for x in self.requests.values() if job(x) == job(r) and not (x.background and self.param["waits"]))
        return (0, path + (path - rest if self.param["slack"] else 0))
