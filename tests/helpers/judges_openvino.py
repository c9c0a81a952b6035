"""openvino-cb by clause C.2 and the head of its file, with plain lists (judges.py)."""
from judges import DEVICE, Param, Queues, Segment


class OpenvinoCb(Queues):
    """Groups by arrival. Split fuse: who generates, then prompts in chunks; else whole prompts, or who generates."""
    name = "openvino-judge"
    params = (DEVICE, Param("variant", "sf256", "", choices=("sf256", "whole", "vllm")),
              Param("max_num_batched_tokens", 0, "0: as the variant has it", 0, 1e9), Param("max_num_seqs", 256, "", 1, 1000000))

    def init(self):
        super().init()
        self.fuse = self.param["variant"] != "vllm"
        self.budget = self.param["max_num_batched_tokens"] or (256 if self.param["variant"] == "sf256" else 10**9)
        self.partial = self.fuse or self.machine.devices[self.device].kind == "cpu"  # victims lose no more than another needs

    def launch_done(self, x):
        pass

    # blocks
    def blocks(self, tokens):
        return -(-tokens // self.kv_block_tokens)

    def held(self, r):
        """Not a prefix that nobody works with, which counts as free."""
        return self.blocks(r.kv_tokens) - (self.blocks(self.kv_cached_tokens([r])[0]) if self.is_cached(r) else 0)

    def need(self, r, n):
        return self.blocks(r.kv_tokens + n) - self.held(r) + r.kv_state_tokens // self.kv_block_tokens

    def fits(self, r, n):
        return self.need(r, n) <= self.kv_free_tokens // self.kv_block_tokens - self.planned

    def refused(self, what):
        pass

    # the parts of a step
    def can(self, r):
        """Who lost KV computes it again but for the last token, which yields the next one in another step."""
        return r.prefill_left - 1 if r.generated_tokens and r.prefill_left > 1 else max(1, r.prefill_left)

    def left(self):
        return self.budget - sum(s.n_tokens for s in self.batch)

    def takes(self, r):
        return self.left() > 0 and (not self.batch or self.batch[0].request.model == r.model)

    def put(self, r, n):
        self.planned += self.need(r, n)
        self.batch.append(Segment(r, "decode" if r.state == "decode" else "prefill", n))
        return True

    def generating(self):
        for i, r in enumerate(self.runs):
            if not r.generated_tokens or r in self.victims or not self.takes(r):
                continue
            n = min(self.can(r), self.left())
            want = self.need(r, n)
            while not self.fits(r, n):
                last = next((v for v in reversed(self.runs[i + 1:]) if self.held(v) > 0), None)
                if last is None:
                    break
                keep = max(0, self.held(last) - want) * self.kv_block_tokens if self.partial else 0
                self.victims.append(last)
                self.kv(last, "nowhere", keep if self.fuse or keep >= last.input_tokens else 0)
                self.sync()
            if self.fits(r, n):
                self.put(r, n)

    def chunk(self, r):
        n = min(self.can(r), self.left()) if self.takes(r) else 0
        while n > 0 and not self.fits(r, n):
            n -= 1
        return n > 0 and self.put(r, n)

    def whole(self, r):
        n = self.can(r)
        return self.takes(r) and (n <= self.left() or not self.batch) and self.fits(r, n) and self.put(r, n)

    def prompts(self):
        """Whole ones: first of those who lost everything."""
        seats = self.param["max_num_seqs"] - sum(r.generated_tokens > 0 for r in self.runs)
        for r in [] if self.partial else [r for r in self.runs if r.kv_tokens == 0]:
            if seats <= 0 or not self.whole(r):
                return
            seats -= 1
        while self.waits and seats > 0 and self.whole(self.waits[0]):
            self.runs.append(self.waits.pop(0))
            seats -= 1

    def schedule(self):
        if self.run is not None:
            return
        self.batch, self.planned, self.victims = [], 0, []
        if not self.fuse:
            self.prompts()
        if not self.batch:
            self.generating()
        if self.fuse:
            for r in self.runs:
                if not r.generated_tokens:
                    self.chunk(r)
            while self.waits and self.chunk(self.waits[0]):
                self.runs.append(self.waits.pop(0))
        if self.batch:
            self.run = self.form(self.batch, len(self.batch) == 1 and self.batch[0].role == "decode")
            if self.sync():
                self.launch(self.run, self.device, yield_="pass")
            else:
                self.run = None
