"""Batching by iterations on paged KV, by clauses E.1 to E.3, policies/README.md and the sources it names (judges.py)."""
from judges import DEVICE, Param, Queues, Segment


class Paged(Queues):
    """Who runs holds a place, in order of admission; who waits comes in order of arrival, after those who lost their KV."""
    params = (DEVICE, Param("max_num_seqs", 16, "", 1, 4096),
              Param("max_num_batched_tokens", 512, "", 1, 1000000), Param("requeue", "front", "", choices=("front", "back")),
              Param("watermark_frac", 0.01, "", 0, 0.5))

    yields = "pass"

    def launch_done(self, x):
        self.on = None

    # blocks
    def blocks(self, tokens):
        return -(-tokens // self.kv_block_tokens)

    def rest(self, r):
        """Of all of its prompt, next to those it has; a prefix that nobody works with counts as free until then."""
        cached = self.kv_cached_tokens([r])[0] if self.is_cached(r) else 0
        return self.blocks(r.length) - self.blocks(r.kv_tokens) + self.blocks(cached) + r.kv_state_tokens // self.kv_block_tokens

    def free(self):
        """Blocks that nobody has, and that no prompt was promised."""
        promised = sum(self.rest(r) for r in self.runs if r.state == "queued" and not r.pass_)
        grown = sum(self.blocks(s.request.kv_tokens + 1) - self.blocks(s.request.kv_tokens) for s in self.batch if s.role == "decode")
        return self.kv_free_tokens // self.kv_block_tokens - promised - grown

    def watermark(self):
        return int(self.param["watermark_frac"] * (self.kv_capacity_tokens // self.kv_block_tokens)) if self.runs else 0

    def lose(self, r):
        """Its KV and its place."""
        self.runs.remove(r)
        self.batch = [s for s in self.batch if s.request is not r]
        self.lost = True
        if r.kv_tokens:
            self.kv(r, "nowhere")
            self.sync()
        self.waits.insert(0 if self.param["requeue"] == "front" else len(self.waits), r)

    def last(self):
        return self.runs[-1]

    def refused(self, what):
        pass

    # the parts of a step
    def tokens(self):
        return sum(s.n_tokens for s in self.batch)

    def joins(self, r, n):
        self.batch.append(Segment(r, "decode" if r.state == "decode" else "prefill", n))

    def other_model(self, r):
        return bool(self.batch) and self.batch[0].request.model != r.model

    def decodes(self, budget):
        """Each wants a free block; where there is none the last who runs gives way."""
        for r in list(self.runs):
            if r not in self.runs or r.state != "decode" or self.other_model(r) or self.tokens() >= budget:
                continue
            while r in self.runs and self.free() < 1:
                self.lose(self.last())
            if r in self.runs:
                self.joins(r, 1)

    def prompts(self):
        for r in self.runs:
            n = min(r.prefill_left, self.budget(r) - self.tokens())
            if r.state == "queued" and not self.other_model(r) and n > 0:
                self.joins(r, n)

    def piece_of(self, r):
        """Tokens with which it would be admitted; 0: not now."""
        return max(0, min(r.prefill_left, self.budget(r) - self.tokens()))

    def room(self, r, n):
        return self.rest(r) + self.watermark() <= self.free()

    def admits(self):
        while self.waits and not self.other_model(self.waits[0]):
            r = self.waits[0]
            n = self.piece_of(r)
            if n <= 0 or not self.has_place(r, n):
                return
            self.runs.append(self.waits.pop(0))
            self.admitted.append(r)
            self.joins(r, n)

    def has_place(self, r, n):
        return len(self.runs) < self.param["max_num_seqs"] and self.room(r, n)

    def schedule(self):
        while self.run is None and (self.runs or self.waits):
            self.batch, self.admitted, self.lost = [], [], False
            self.compose()
            while self.batch:
                self.run = self.form(self.batch, len(self.batch) == 1 and self.batch[0].role == "decode")
                if self.sync():
                    self.on, self.asked = self.launch(self.run, self.device, yield_=self.yields), False
                    return
                self.run = None
                if self.admitted:  # the last goes back
                    r = self.admitted.pop()
                    self.runs.remove(r)
                    self.batch = [s for s in self.batch if s.request is not r]
                    self.waits.insert(0, r)
                else:
                    self.lose(self.last())
            if not self.lost:
                return


class Sarathi(Paged):
    """arXiv 2403.02310, algorithm 3, and SarathiScheduler: decodes, then prompts in progress, then who waits, in a budget of tokens."""
    name = "sarathi-judge"
    params = Paged.params + (Param("stall_free", True, ""), Param("dynamic_chunk", False, ""), Param("high_chunk", 512, "", 1, 1000000),
                             Param("low_chunk", 128, "", 1, 1000000), Param("chunk_stages", 4, "", 2, 1000),
                             Param("chunk_span", 2048, "", 1, 1000000))

    def budget(self, r):
        """SarathiScheduler: stages of equal length; budgets from high to low in equal steps, in multiples of 32."""
        if not self.param["dynamic_chunk"]:
            return self.param["max_num_batched_tokens"]
        high, low, n = self.param["high_chunk"], self.param["low_chunk"], self.param["chunk_stages"]
        stage = min(r.kv_tokens // -(-self.param["chunk_span"] // n), n - 1)
        size = int(low + (high - low) * (n - 1 - stage) / (n - 1))
        return round(size / min(32, low)) * min(32, low)

    def compose(self):
        if self.param["stall_free"]:
            self.decodes(1 << 40)
            self.prompts()
            if not self.lost:
                self.admits()
        else:
            self.prompts()
            self.admits()
            self.decodes(self.param["max_num_batched_tokens"])


class VllmV0(Paged):
    """A step of whole prompts, up to the first that does not fit, or a token for each who runs."""
    name = "vllm-v0-judge"
    params = Paged.params + (Param("mixed_steps", False, ""),)

    def piece_of(self, r):
        return r.prefill_left if not self.batch or r.prefill_left <= self.param["max_num_batched_tokens"] - self.tokens() else 0

    def compose(self):
        self.admits()
        if not self.batch:
            self.decodes(1 << 40)
        elif self.param.get("mixed_steps", False):
            self.decodes(self.param["max_num_batched_tokens"])


class VllmV1(Paged):
    """One budget: who runs, in order of admission, then who waits; KV is taken request by request."""
    name = "vllm-v1-judge"
    params = Paged.params[:-1] + (Param("long_prefill_token_threshold", 0, "", 0, 1000000), Param("chunked_prefill", True, ""),
                                  Param("admit_after_preemption", False, ""), Param("reserve_full_isl", True, ""),
                                  Param("async_scheduling", False, ""))
    ahead = None  # with asynchronous scheduling: who may join the next iteration, and whether somebody else was there

    def launch(self, *what, **how):
        if self.param.get("async_scheduling", False):
            places = self.param["max_num_seqs"] - len(self.runs)
            self.ahead = self.waits[:places], len(self.runs) + len(self.waits) > 1
        return super().launch(*what, **how)

    def schedule(self):
        super().schedule()
        if self.run is None and self.ahead is not None:  # nothing was composed ahead
            self.ahead = None
            super().schedule()

    def has_place(self, r, n):
        return (self.ahead is None or r in self.ahead[0]) and super().has_place(r, n)

    def free(self):
        return self.kv_free_tokens // self.kv_block_tokens - sum(self.more(s.request, s.n_tokens) for s in self.batch)

    def more(self, r, n):
        cached = self.kv_cached_tokens([r])[0] if self.is_cached(r) else 0
        return self.blocks(r.kv_tokens + n) - self.blocks(r.kv_tokens) + self.blocks(cached) + r.kv_state_tokens // self.kv_block_tokens

    def left(self):
        return self.param["max_num_batched_tokens"] - self.tokens()

    def cut(self, r):
        most = self.param.get("long_prefill_token_threshold", 0)
        others = len(self.runs) + len(self.waits) > 1 if self.ahead is None else self.ahead[1]
        return min(r.prefill_left, most) if most and others else r.prefill_left

    def piece_of(self, r):
        if not self.param["chunked_prefill"] and self.cut(r) > self.left():
            return 0 if self.batch else self.cut(r)
        return min(self.cut(r), self.left())

    def room(self, r, n):
        return self.more(r, r.prefill_left if self.param["reserve_full_isl"] else n) <= self.free()

    def compose(self):
        for r in list(self.runs):
            if r not in self.runs or self.left() <= 0 or self.other_model(r):
                continue
            n = 1 if r.state == "decode" else self.piece_of(r)
            while r in self.runs and self.more(r, n) > self.free():
                self.lose(self.last())
            if r not in self.runs:  # the victim was itself
                break
            if n:
                self.joins(r, n)
        if not self.lost or self.param.get("admit_after_preemption", False):
            self.admits()


class VllmPriority(VllmV1):
    """The same two schedulers by (class, priority, arrival): who waits, and, reversed, who gives way."""
    name = "vllm-priority-judge"
    params = Paged.params + (Param("mode", "v1", "", choices=("v0", "v1")), Param("force_preempt", True, ""), Param("by_priority", True, ""),
                             Param("chunked_prefill", True, ""), Param("reserve_full_isl", True, ""), Param("interrupt", False, ""))

    def init(self):
        super().init()
        self.v = VllmV1 if self.param["mode"] == "v1" else VllmV0
        self.urgent, self.yields = False, "kernel" if self.interrupts() else "pass"

    def interrupts(self):
        return self.param["interrupt"] and self.param["by_priority"]

    def stands_back(self, r):
        """In an iteration for those whom the one before was stopped for."""
        return self.urgent and r.cls == "proactive"

    def other_model(self, r):
        return self.stands_back(r) or super().other_model(r)

    def schedule(self):
        if self.run is not None and self.on is None and self.run.state == "ready":  # stopped: its work is lost
            stopped, self.run = self.run, None
            self.cancel(stopped)
            self.sync()
            for r in (s.request for s in stopped.segments):
                if self.v is VllmV0 and r in self.runs and r.state == "queued":  # a prompt there is an admission
                    self.runs.remove(r)
                    self.waits.append(r)
        self.sort()
        head = self.waits[0] if self.waits else None
        if self.run is None:
            self.urgent = self.urgent and head is not None and head.cls == "reactive"
            if self.urgent and self.v is VllmV1:  # it has a place
                self.runs.insert(0, self.waits.pop(0))
            super().schedule()
            self.urgent = False
        elif self.interrupts() and self.on is not None and not self.asked and head and head.cls == "reactive" and \
                all(s.request.cls == "proactive" for s in self.run.segments):
            self.batch = []
            if self.has_place(head, self.piece_of(head)):
                self.preempt(self.on)
                self.asked = self.urgent = True

    def key(self, r):
        return (r.cls == "proactive", r.priority, r.arrival_ns, r.id)

    def last(self):
        return max(self.runs, key=self.key) if self.param["by_priority"] else self.runs[-1]

    def sort(self):
        if self.param["by_priority"]:
            self.waits.sort(key=self.key)

    def piece_of(self, r):
        return self.v.piece_of(self, r)

    def room(self, r, n):
        return self.v.room(self, r, n)

    def free(self):
        return (VllmV1 if self.v is VllmV1 else Paged).free(self)

    def compose(self):
        """V0: the worst who runs gives way to the first who waits, who is better and finds no place or no KV."""
        force = self.v is VllmV0 and self.param["force_preempt"] and self.param["by_priority"]
        head = self.waits[0] if self.waits else None
        while force and head and self.runs and not self.has_place(head, 0) and self.key(head) < self.key(self.last()):
            self.lose(self.last())
        self.v.compose(self)
        self.urgent = self.urgent and bool(self.batch)

    def lose(self, r):
        super().lose(r)
        self.sort()


class Fcfs(Paged):
    """One request from its first token to its last."""
    name = "fcfs-judge"
    params = Paged.params[:1]

    def schedule(self):
        if self.run is None and self.waits:
            r = self.waits[0]
            self.run = self.form([self.piece(r, 1 << 30)], r.state == "decode")
            self.launch(self.run, self.device, yield_="pass")

    def pass_done(self, p):
        self.run = None
        self.waits = [r for r in self.waits if not r.left]
