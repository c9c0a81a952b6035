"""XSched's fixed priorities by clause E.4 and policies/README.md, with plain lists (judges.py)."""
from types import SimpleNamespace

from judges import Param, Plain, Segment

NOBODY = (9,)  # after everybody


def priority(r):
    return r.cls == "proactive", r.priority


def order(r):
    return priority(r) + (r.arrival_ns, r.id)


class Hpf(Plain):
    """A device works for the most urgent of those that are ready on it."""
    name = "hpf-judge"
    once = False
    needs = ("spans", "row_split", "kv_move", "kernel_yields", "npu", "igpu")
    params = (Param("max_batch", 16, "", 1, 4096), Param("inflight", 2, "", 1, 64),
              Param("level", "device", "", choices=("device", "1", "2", "3")))
    everywhere = False

    def init(self):
        self.npu, self.igpu = (next(d.index for d in self.machine.devices if d.kind == k) for k in ("npu", "igpu"))
        self.chunk = self.machine.devices[self.npu].chunk_rows
        self.waiting, self.decoding = [], []         # prompts, also stopped ones; sequences in no pass
        self.current, self.stopped = None, {}        # the prompt on the devices; passes of those it displaced
        self.p = self.planned = None
        self.rows, self.on, self.planned_ns = {}, {}, 0
        self.group, self.paused = None, []           # iterations: the iGPU's; the stopped ones, the most urgent last
        self.group_on, self.since, self.short = None, None, False

    # hooks
    def request_arrived(self, r):
        self.waiting.append(r)

    def request_cancelled(self, r):
        self.waiting, self.decoding = ([x for x in q if x is not r] for q in (self.waiting, self.decoding))

    def launch_done(self, x):
        self.short = False
        if x is self.group_on:
            self.group_on, self.since = None, self.now_ns
            return
        self.on = {d: y for d, y in self.on.items() if y is not x}
        if x.outcome != "done":
            self.planned, self.rows = None, {}

    def pass_done(self, p):
        self.short = False
        r = p.segments[0].request
        if p is self.p:
            self.current = self.p = self.planned = None
            self.rows = {}
        elif self.group and p is self.group.p:
            self.group = None
        elif self.stopped.get(r.id) is p:
            del self.stopped[r.id]
            self.waiting.remove(r)
        else:
            self.paused = [g for g in self.paused if g.p is not p]
        self.back(p)

    def back(self, p):
        for r in (s.request for s in p.segments):
            if not r.left:
                (self.decoding if r.state == "decode" else self.waiting).append(r)

    def stop(self, x):
        if x is not None and not x.stop_requested:
            self.preempt(x, now=self.param["level"] == "3", drain=self.param["level"] == "1")

    # memory
    def give_up(self, p):
        self.cancel(p)
        self.sync()
        self.back(p)

    def make_room(self, first):
        """Stopped iterations, the least urgent first; stopped prompts and sequences, the last first; the prompt between two kernels."""
        if self.paused and self.paused[0].key > priority(first):
            self.give_up(self.paused.pop(0).p)
            return True
        if self.group and self.group.key > priority(first) and self.group.p.state == "ready":
            g, self.group = self.group, None
            self.give_up(g.p)
            return True
        r = max((r for r in self.waiting if r.id in self.stopped), key=order, default=None)
        if r and order(r) > order(first):
            self.waiting.remove(r)
            self.give_up(self.stopped.pop(r.id))
            return True
        r = max((r for r in self.decoding if r.kv_tokens), key=order, default=None)
        if r and order(r) > order(first):
            self.kv(r, "nowhere")
            self.sync()
            self.decoding.remove(r)
            self.waiting.append(r)
            return True
        r = self.current
        if r and r is not first and order(r) > order(first) and self.p.state == "ready":
            p, self.current, self.p, self.planned, self.rows = self.p, None, None, None, {}
            self.give_up(p)
            return True
        return False

    # prompts
    def choose_prompt(self, bound):
        top = min(self.waiting, key=order, default=None)
        if top is None or priority(top) > bound:
            return
        if self.current and priority(top) < priority(self.current):
            for d in sorted(self.on):
                self.stop(self.on[d])
            if self.p.state != "ready":
                return
            self.stopped[self.current.id] = self.p
            self.waiting.append(self.current)
            self.current = self.p = self.planned = None
            self.rows = {}
        if self.current is None:
            p = self.stopped.pop(top.id, None)
            while p is None:
                p = self.form([Segment(top, "prefill", top.prefill_left)])
                if not self.sync():
                    p = None
                    if not self.make_room(top):
                        return
            self.waiting.remove(top)
            self.current, self.p, self.planned, self.rows, self.on = top, p, None, {}, {}

    def put(self, d):
        if self.rows.get(d) and d not in self.on and self.free_slots[d]:
            self.on[d] = self.launch(self.p, d, n_ops=1, rows=self.rows.pop(d), yield_="kernel", inflight=self.param["inflight"])

    def run_npu(self, bound):
        if self.current is None:
            return
        p = self.p
        if p.op < p.n_ops and not p.n_launches and self.planned != p.op:
            npu = p.rows_todo // self.chunk * self.chunk if p.op_kind() in ("qkv", "ffn") else 0
            self.planned, self.rows, self.planned_ns = p.op, {self.npu: npu, self.igpu: p.rows_todo - npu}, self.now_ns
        if priority(self.current) > bound:
            self.stop(self.on.get(self.npu))
        else:
            self.put(self.npu)

    # iterations
    def decodes(self):
        """The most urgent of those ready to decode; nobody while the host samples."""
        if self.group and not self.group_on and self.group.p.state != "ready":
            return NOBODY
        return min([g.key for g in [self.group] + self.paused if g] + [priority(r) for r in self.decoding], default=NOBODY)

    def form_group(self):
        first = min(self.decoding, key=order, default=None)
        batch = [r for r in sorted(self.decoding, key=order) if priority(r) == priority(first) and r.model == first.model][:self.param["max_batch"]]
        self.decoding = [r for r in self.decoding if r not in batch]
        while batch:
            p = self.form([Segment(r, "decode", 1) for r in batch], len(batch) == 1)
            if self.sync():
                self.group = SimpleNamespace(p=p, key=priority(first))
                return
            if not self.make_room(first):
                self.decoding.append(batch.pop())
        self.short = True

    def iterate(self, one):
        if not self.free_slots[self.igpu]:
            return False
        key = min((priority(r) for r in self.decoding), default=NOBODY)
        if self.group and self.group.p.state == "ready" and key < self.group.key:
            g, self.group = self.group, None
            if len(self.paused) < 8:
                self.paused.append(g)
            else:
                self.give_up(g.p)
        if self.group is None:
            if self.paused and self.paused[-1].key <= key:
                self.group = self.paused.pop()
            else:
                self.form_group()
        if self.group is None or self.group.p.state != "ready":
            return False
        self.group_on = self.launch(self.group.p, self.igpu, yield_="kernel", inflight=self.param["inflight"], **({"n_ops": 1} if one else {}))
        return True

    def run_igpu(self, bound):
        """The more urgent of prompt and iteration goes first and stops the other; equals take turns, an op at a time."""
        waits = self.rows.get(self.igpu) and self.igpu not in self.on
        prompt, decode = priority(self.current) if waits else NOBODY, self.decodes()
        if self.group_on:
            x = self.group_on
            if min(decode, prompt, bound) < self.group.key or (prompt == self.group.key and x.op_end - x.op_begin > 1):
                self.stop(x)
        elif self.igpu in self.on:
            if (decode < priority(self.current) and not self.short) or bound < priority(self.current):
                self.stop(self.on[self.igpu])
        else:
            first = prompt < decode or (prompt == decode and (self.since is None or self.planned_ns <= self.since))
            if not first and decode <= bound and self.iterate(prompt == decode):
                return
            if self.current and priority(self.current) <= bound:
                self.put(self.igpu)

    def schedule(self):
        prompts = [priority(r) for r in self.waiting + ([self.current] if self.current else [])]
        bound = min(prompts + [self.decodes()]) if self.everywhere else NOBODY
        self.choose_prompt(bound)
        self.run_npu(bound)
        if self.decodes() == NOBODY or self.group_on:
            self.since = None
        elif self.since is None:
            self.since = self.now_ns
        self.run_igpu(bound)


class Hhpf(Hpf):
    """Every device works for the most urgent of those that are ready on any."""
    name = "hhpf-judge"
    everywhere = True
