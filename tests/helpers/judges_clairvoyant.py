"""List schedules by the head of policies/clairvoyant.h, with plain lists (judges.py): tests/golden/planned.c has the policy."""
from judges import Param, Plain

KINDS = ("npu", "igpu", "cpu")


class Planned(Plain):
    """Prompts one at a time on a device, decodes together on another or the same; who is first in the order among those that are ready
    takes a free one. Nothing that runs is stopped."""
    name = "planned-judge"
    flags = ("oracle",)
    needs = ("spans", "kv_move", "npu", "igpu")
    params = (Param("prefill", "npu", "", choices=KINDS), Param("decode", "igpu", "", choices=KINDS), Param("max_batch", 1, "", 1, 1000),
              Param("reactive_first", False, ""), Param("listed", 0, "", 0, 64), Param("order", 0, "", 0, 1000))

    def init(self):
        at = {d.kind: d.index for d in self.machine.devices}
        self.on_p, self.on_d, self.igpu, self.mem = at[self.param["prefill"]], at[self.param["decode"]], at["igpu"], {}
        self.device = self.on_d  # of estimates
        self.apart = self.machine.devices[self.on_p].static_attention  # attention and head are the iGPU's
        self.prompts, self.decodes, self.answer = [], [], {}
        self.prompt = self.step = None
        listed = sorted(range(self.param["listed"]), key=lambda i: (i * 37 + self.param["order"]) % 101)
        self.rank = {i: at for at, i in enumerate(listed)}

    def request_arrived(self, r):
        self.answer[r.id] = self.oracle_output_tokens([r])[0]
        self.prompts.append(r)

    def request_cancelled(self, r):
        self.prompts, self.decodes = ([x for x in q if x is not r] for q in (self.prompts, self.decodes))

    def launch_done(self, x):
        pass

    def pass_done(self, p):
        if p is self.prompt:
            self.prompt = None
        if p is self.step:
            self.step = None
        for r in (s.request for s in p.segments):
            if not r.left:
                (self.decodes if r.state == "decode" else self.prompts).append(r)

    # the order
    def remaining(self, r):
        return self.prompt_ns(r) + (self.answer[r.id] - r.generated_tokens - (r.state == "queued")) * self.token_ns(r)

    def key(self, r):
        late = self.param["reactive_first"] and r.cls == "proactive"
        return late, self.rank.get(r.id, len(self.rank)) if self.rank else self.remaining(r), r.arrival_ns, r.id

    def first(self, q):
        return min(q, key=self.key, default=None)

    # passes
    def refused(self, what):
        pass

    def makes_room(self, batch, r=None):
        """Whoever is furthest back, outside the batch or behind a prompt, and holds KV in no pass, computes it again."""
        held = [x for x in self.prompts + self.decodes if x not in batch and x.kv_tokens and not self.is_cached(x)]
        last = max(held, key=self.key, default=None)
        if last is None or r and self.key(last) < self.key(r):
            return False
        self.kv(last, "nowhere")
        self.sync()
        if last in self.decodes:
            self.decodes.remove(last)
            self.prompts.append(last)
        return True

    def begin(self):
        r = self.first(self.prompts)
        while r is not None:
            self.prompt = self.form([self.piece(r, 1 << 30)])
            if self.sync():
                self.prompts.remove(r)
                return
            self.prompt = None
            if not self.makes_room([r], r):
                return

    def iterate(self):
        q = sorted(self.decodes, key=self.key)
        batch = [r for r in q if r.model == q[0].model][:self.param["max_batch"]]
        while batch:
            self.step = self.form([self.piece(r, 1) for r in batch], len(batch) == 1)
            if self.sync():
                self.decodes = [r for r in self.decodes if r not in batch]
                return
            self.step = None
            if not self.makes_room(batch):
                batch.pop()

    # devices
    def go_on(self, p, device):
        if p is not None and p.state == "ready" and p.op < p.n_ops and self.free_slots[device]:
            self.launch(p, device, yield_="pass")

    def advance(self):
        p = self.prompt
        if not self.apart:
            self.go_on(p, self.on_p)
        elif p is not None and p.state == "ready" and p.op < p.n_ops:
            device = self.on_p if p.op_kind() in ("qkv", "ffn") else self.igpu
            if self.free_slots[device]:
                self.launch(p, device, n_ops=1, yield_="pass")

    def schedule(self):
        r, d = self.first(self.prompts), self.first(self.decodes)
        if self.on_p == self.on_d:  # they take turns
            if self.prompt is None and self.step is None:
                if r is not None and (d is None or self.key(r) < self.key(d)):
                    self.begin()
                if self.prompt is None:
                    self.iterate()
                if self.step is None and self.prompt is None:
                    self.begin()
        else:
            if self.prompt is None:
                self.begin()
            if self.step is None:
                self.iterate()
        p, s = self.prompt, self.step
        before = p is not None and s is not None and self.key(p.segments[0].request) < min(self.key(x.request) for x in s.segments)
        if before:
            self.advance()
        self.go_on(s, self.on_d)
        self.advance()
