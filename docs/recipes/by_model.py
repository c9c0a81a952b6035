"""Each model has a device of its own, or all share the iGPU: what is a second device worth?"""

from xpusim import Param, Policy
from xpusim.helpers import form, next_piece, place


class ByModel(Policy):
    """Reactive prompts first, in chunks, then a token for everybody. Models take turns on a device."""

    once = sleeps = steady = True
    params = (Param("second", "npu", "device of every model but the first", choices=("npu", "igpu")),)

    def init(self):
        self.place = [place(self.machine, "igpu"), place(self.machine, self.param["second"])]
        self.live, self.admitted = [], set()
        self.passes, self.turn = {}, {}  # by device; by model, when it was served

    def request_arrived(self, r):
        self.live.append(r)

    def request_cancelled(self, r):
        self.live = [x for x in self.live if x is not r]

    def pass_done(self, p):
        self.live = [r for r in self.live if not r.left]
        self.free()

    def refused(self, what):
        self.free()

    def free(self):
        self.passes = {d: p for d, p in self.passes.items() if p.state in ("ready", "running")}

    def admit(self, r):
        """A request begins when all that it may need fits next to all that the others may need."""
        def left(x):
            return x.input_tokens + x.max_output_tokens - x.kv_tokens + self.kv_block_tokens
        others = [x for x in self.live if x.id in self.admitted and x is not r]
        if r.id in self.admitted or not others or sum(map(left, others)) + left(r) <= self.kv_free_tokens:
            self.admitted.add(r.id)
        return r.id in self.admitted

    def schedule(self):
        for model in sorted({r.model for r in self.live}, key=lambda m: self.turn.get(m, 0)):
            device = self.place[min(model, 1)]
            own = sorted((r for r in self.live if r.model == model), key=lambda r: (r.cls != "reactive", r.arrival_ns))
            own = [r for r in own if not r.pass_ and self.admit(r)]
            if device in self.passes or not own:
                continue
            prompts = [r for r in own if r.state == "queued"]
            p = form(self, [next_piece(prompts[0], 512)] if prompts else [next_piece(r) for r in own[:16]])
            self.launch(p, device)
            self.passes[device] = p
            self.turn[model] = max(self.turn.values(), default=0) + 1
