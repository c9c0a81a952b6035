"""Orca by clauses C.4 c and E.1, with plain lists (judges.py)."""
from judges import DEVICE, Param, Queues, Segment
from judges_gap import states


class Orca(Queues):
    """Who is in progress goes on; then who waits is admitted in order, with the whole prompt, while all KV it may need can be reserved."""
    name = "orca-judge"
    params = (DEVICE, Param("max_num_seqs", 16, "", 1, 1000000), Param("reserve", True, ""))

    def blocks(self, r):
        return -(-(r.input_tokens + r.max_output_tokens + states(self, r.model)) // self.kv_block_tokens)

    def fits(self, r, batch):
        if not self.runs:
            return True
        if self.param["reserve"]:
            return sum(map(self.blocks, self.runs + [r])) * self.kv_block_tokens <= self.kv_capacity_tokens
        cached = self.kv_cached_tokens([r])[0] if self.is_cached(r) else 0
        return r.prefill_left + r.kv_state_tokens + cached + sum(s.n_tokens + s.request.kv_state_tokens * (s.request is not r) for s in batch) <= self.kv_free_tokens

    def schedule(self):
        while self.run is None and (self.runs or self.waits):
            batch = [self.piece(r, 1 << 30) for r in self.runs]
            while self.waits and len(self.runs) < self.param["max_num_seqs"] and self.waits[0].model == (self.runs + self.waits)[0].model and \
                    self.fits(self.waits[0], batch):
                self.runs.append(self.waits.pop(0))
                batch.append(self.piece(self.runs[-1], 1 << 30))
            while batch:
                self.run = self.form(batch, len(batch) == 1 and batch[0].role == "decode")
                if self.sync():
                    self.launch(self.run, self.device, yield_="pass")
                    return
                self.run = None
                if len(self.runs) < 2:
                    return
                r = self.runs.pop()  # the youngest starts over
                if r.kv_tokens:
                    self.kv(r, "nowhere")
                    self.sync()
                self.waits.insert(0, r)
                batch.pop()
