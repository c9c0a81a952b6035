"""llm-npu by llm.npu's equations (arXiv 2407.05858, 3.3 and 3.4; docs/clauses.md E.18)."""
import math

from xpusim import Policy
from xpusim.policy import Param, Segment


class LlmNpu(Policy):
    """Requests in progress in order of arrival; a processor takes the first ready subgraph with the largest contribution. All decode
    together where no prompt has work for the CPU."""
    name = "llm-npu-judge"
    once = True
    needs = ("spans", "row_split", "kv_move", "npu", "cpu")
    params = (Param("in_progress", 2, "", 1, 64), Param("order", "chunks", "", choices=("chunks", "together")),
              Param("outlier_frac", 0.01, "", 0, 0.5))

    def init(self):
        self.npu, self.cpu = (next(d.index for d in self.machine.devices if d.kind == k) for k in ("npu", "cpu"))
        self.wait, self.run, self.of, self.mem = [], [], {}, {}
        self.parts = {}  # devices that have had their part of a pass's operator
        self.outliers = math.ceil(self.param["outlier_frac"] * 1024)  # columns

    def request_arrived(self, r):
        self.wait.append(r)

    def request_cancelled(self, r):
        self.wait = [x for x in self.wait if x is not r]
        self.run = [x for x in self.run if x is not r]

    def launch_done(self, x):
        pass

    def pass_done(self, p):
        for r in (s.request for s in p.segments):
            self.of[r.id] = [x for x in self.of[r.id] if x is not p]
            if r.left:
                self.run = [x for x in self.run if x is not r]

    def begin(self, r):
        chunk = self.machine.devices[self.npu].chunk_rows if self.param["order"] == "chunks" else 1 << 30
        left, role = r.prefill_left, "prefill"
        self.of[r.id] = []
        while left:
            n = min(left, chunk)
            self.of[r.id].append(self.form([Segment(r, role, n)]))
            left, role = left - n, "ahead"

    # memory
    def has_room(self, r):
        """For its prompt, and some tokens for each."""
        cached = self.kv_cached_tokens([r])[0]
        return not self.run or r.prefill_left + r.kv_state_tokens + cached + 64 * (len(self.run) + 1) <= self.kv_free_tokens

    def give_up(self, r):
        for p in reversed(self.of.pop(r.id)):
            self.cancel(p)
        if r.kv_tokens:
            self.kv(r, "nowhere")
        self.sync()
        self.wait.insert(0, r)

    def refused(self, what):
        pass

    # A subgraph: what is next of a chunk. Attention and the head are the CPU's.
    def on_cpu(self, p, op):
        return p.op_kind(op) in ("mha", "head", "layer")

    def ready(self, chunks, at, i):
        """Attention needs the QKV of the layer in all chunks before it (eq. 2), the head their ends, all else its own chunk (eq. 3)."""
        p, op = chunks[i], at[i]
        if op == p.n_ops or p.op_kind(op) not in ("mha", "head"):
            return op < p.n_ops
        return all(at[k] >= min(op, chunks[k].n_ops) for k in range(i))

    def time(self, p, op):
        key = (p.shape, p.op_kind(op), self.cpu if self.on_cpu(p, op) else self.npu)
        if key not in self.mem:
            self.mem[key] = self.estimate(*key).t_ns
        return self.mem[key]

    def gain(self, chunks, at, i):
        """Time of what the other processor can do once it is done, and could not before; of the NPU's its negative (eq. 5)."""
        cpu, after, t = self.on_cpu(chunks[i], at[i]), list(at), 0
        after[i] += 1
        for k, p in enumerate(chunks):
            if self.ready(chunks, after, k) and self.on_cpu(p, after[k]) != cpu and (k == i or not self.ready(chunks, at, k)):
                t += self.time(p, after[k])
        return t if cpu else -t

    def part(self, p, device):
        """Is it still to be launched?"""
        return p.op < p.n_ops and device not in self.parts.get((p.id, p.op), ())

    def choose(self, device):
        for r in self.run:
            chunks = self.of[r.id]
            if device == self.cpu and self.outliers:  # they hold the NPU back
                p = next((p for p in chunks if self.part(p, device) and not self.on_cpu(p, p.op)), None)
                if p is not None:
                    return p
            # what runs counts as not yet done, and is not ready
            at = [p.op for p in chunks]
            best = [i for i, p in enumerate(chunks) if self.part(p, device) and self.ready(chunks, at, i) and
                    self.on_cpu(p, at[i]) == (device == self.cpu)]
            if best:
                return chunks[max(best, key=lambda i: (self.gain(chunks, at, i), -i))]
        return None

    def schedule(self):
        while self.wait and len(self.run) < self.param["in_progress"] and self.has_room(self.wait[0]):
            self.run.append(self.wait.pop(0))
            self.begin(self.run[-1])
            self.sync()
        for device in (self.npu, self.cpu):
            p = self.choose(device) if self.free_slots[device] else None
            if p is not None:
                self.parts.setdefault((p.id, p.op), set()).add(device)
                shared = self.outliers and not self.on_cpu(p, p.op)
                columns = {"columns": self.outliers if device == self.cpu else 1024 - self.outliers} if shared else {}
                self.launch(p, device, n_ops=1, **columns)
        while self.free_slots[self.cpu]:  # no prompt has work for the CPU
            decodes = [r for r in self.run if r.state == "decode"]
            if not decodes or any(r.pass_ for r in decodes):
                break
            batch = [Segment(r, "decode", 1) for r in decodes if r.model == decodes[0].model]
            p = self.form(batch, len(batch) == 1)
            if self.sync():
                self.launch(p, self.cpu)
            else:
                self.give_up(self.run.pop())
