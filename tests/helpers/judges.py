"""Policies by their definitions (docs/clauses.md, heads of policies/*.c, the papers), with plain lists: nothing is kept up to date,
everything is worked out again at each decision. tests/helpers/judged_check.py compares their decisions with those of the policies."""
from types import SimpleNamespace

from judges_gap import PARAMS as GAP, Gaps, states
from xpusim import Policy
from xpusim.policy import Param, Segment, Shape, shape_of  # what a policy outside the tree has, too

E9 = 1e9
DEVICE = Param("device", "auto", "", choices=("auto", "npu", "igpu", "cpu"))  # auto: the iGPU


def known(ns):
    """Not everybody has a deadline, or a first token."""
    return ns is not None and 0 <= ns < 9e18


def axes(max_batch=16, rule="rt_first", preempt="iteration"):
    return (DEVICE, Param("max_batch", max_batch, "", 1, 4096), Param("token_budget", 512, "", 1, 1000000),
            Param("class", rule, "", choices=("rt_first", "blind", "rt_alone", "window")),
            Param("preempt", preempt, "", choices=("iteration", "layer", "kernel", "reset")),
            Param("kv", "checkpoint", "", choices=("checkpoint", "recompute", "swap")), Param("inflight", 1, "", 1, 64),
            Param("level", "device", "", choices=("device", "1", "2", "3"))) + GAP


class Plain(Policy):
    """An iteration of the first in order; the axes of policies/README.md."""
    once = True
    needs = ("spans", "kv_move")
    params = axes()

    def init(self):
        self.device = self.machine.find(self.param.get("device", "auto").replace("auto", "igpu")).index
        self.ready, self.run, self.on, self.asked, self.paused = [], None, None, False, []
        self.mem, self.losses, self.ran = {}, {}, 0
        self.worked = set()  # whose KV a pass has worked on
        self.nth = {}  # the order in which the policy heard of them: weights may be late
        self.gap = Gaps(self, self.context_ns) if "gap_kv" in self.param else None

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

    def context_ns(self, model, tokens):
        """To prefill so many from nothing, a budget at a time."""
        t, k = 0, 0
        while k < tokens:
            n = min(tokens - k, self.param["token_budget"])
            t += self.pass_ns(Shape(n, 1, 1, n, n * k + n * (n + 1) // 2, k + n, k + n, model), False, k + n == tokens)
            k += n
        return t

    # hooks
    def request_arrived(self, r):
        self.nth[r.id] = len(self.nth)
        self.gap.arrived(r)
        self.ready.append(r)

    def kv_moved(self, r):
        self.ready.append(r)
        if not r.kv_swapped:
            self.worked.add(r.id)

    def request_cancelled(self, r):
        if r in self.ready:
            self.ready.remove(r)

    def launch_done(self, x):
        self.on = None
        if x.outcome in ("yielded", "reset"):
            p = self.run
            p.data.since = self.now_ns
            kept = p.op + (x.outcome != "reset")  # a killed kernel is lost
            p.data.ran = min(max(p.data.ran + self.now_ns - x.start_ns, self.ops_ns(p, p.op)), self.ops_ns(p, kept))
            self.paused.append(self.run)
            self.run = None

    def pass_done(self, p):
        """Over, or given up by all its users while it was aside."""
        if p in self.paused:
            self.paused.remove(p)
        else:
            self.run = None
        if p.state == "done":
            self.served(p, self.now_ns - p.data.began)
        for s in p.segments:
            if s.request.left:
                self.gap.finished(s.request)
            else:
                self.ready.append(s.request)
                self.worked.add(s.request.id)

    def served(self, p, ns):
        pass

    # order
    def place(self, r):
        """Who keeps memory: a fixed order."""
        return (self.param["class"] != "blind" and r.cls == "proactive", self.nth[r.id])

    def rank(self, r):
        return (self.place(r)[0], self.key(r), r.arrival_ns, r.id)

    def welcome(self):
        """Background work begins only while a window is open."""
        closed = self.param["class"] == "window" and not self.machine_state().background_window
        return [r for r in self.ready if not (closed and r.cls == "proactive")]

    def order(self):
        return sorted(self.welcome(), key=self.rank)

    def piece(self, r, most):
        return Segment(r, "decode", 1) if r.state == "decode" else Segment(r, "prefill", min(r.prefill_left, most))

    def fill(self):
        batch, tokens, blocks, size = [], 0, 0, self.kv_block_tokens
        self.filling = batch
        for r in self.order():
            if len(batch) == self.param["max_batch"] or tokens == self.param["token_budget"]:
                break
            if batch and r.model != batch[0].request.model:
                continue
            if self.param["class"] == "rt_alone" and batch and batch[0].request.cls == "reactive" and r.cls == "proactive":
                break
            if r.kv_swapped:  # it comes back first
                if not self.back(r):
                    break
                continue
            # a prompt begins where all of it has room
            new = r.kv_tokens == 0 or self.is_cached(r)
            cached = -(-self.kv_cached_tokens([r])[0] // size) if self.is_cached(r) else 0
            need = -(-(r.kv_tokens + max(1, r.prefill_left)) // size) - -(-r.kv_tokens // size) + cached + r.kv_state_tokens // size
            if batch and new and (blocks + need) * size > self.kv_free_tokens:
                break
            blocks += need
            batch.append(self.piece(r, self.param["token_budget"] - tokens))
            tokens += batch[-1].n_tokens
        return batch

    # memory
    def is_cached(self, r):
        """All its KV is a prefix that it has found."""
        return 0 < r.kv_tokens == r.reused_tokens and not r.generated_tokens

    def gives(self, r):
        """Evicting it makes room: what no pass has worked on counts as free."""
        return r.kv_tokens > 0 and r.id in self.worked and not r.kv_swapped

    def refused(self, what):
        pass

    def lose(self, r):
        if r.kv_tokens:
            self.kv(r, "nowhere")
            self.sync()
        self.worked.discard(r.id)

    def back(self, r):
        """From flash, where there is room."""
        self.kv(r, "memory")
        back = self.sync()
        if back:
            self.ready.remove(r)
        return back

    def begin(self, batch, finish=False):
        """Where memory is short, the last who waits gives way to the first of the batch; else the batch shrinks."""
        while batch:
            ranks = [self.rank(s.request)[:2] for s in batch]
            self.run = self.form(batch, len(batch) == 1 and batch[0].role == "decode")
            if self.sync():
                self.run.data = SimpleNamespace(ranks=ranks, began=self.now_ns, finish=finish, ran=0)
                for s in batch:
                    self.ready.remove(s.request)
                return
            self.run = None
            members = [s.request for s in batch]
            last = max((r for r in self.ready if r not in members and self.gives(r)), key=self.place, default=None)
            if last is not None and self.place(last) > min(map(self.place, members)):
                self.lose(last)
            else:
                batch = batch[:-1]

    # passes that stop
    grows = 0  # of the key of a member, for each ns of its work that is done

    def ops_ns(self, p, n):
        """Annotated time of the first ops of a pass."""
        layers, more = divmod(min(n, self.models[p.shape.model].n_layers * len(p.layer)), len(p.layer))
        t = self.many([(p.shape, k, self.device) for k in p.layer])
        head = self.many([(p.shape, "head", self.device)])[0] if n == p.n_ops and p.shape.logit_rows else 0
        return sum(t) * layers + sum(t[:more]) + head

    def pass_rank(self, p):
        """By now: each member has done of its own part what the pass has done of the whole."""
        whole = self.ops_ns(p, p.n_ops)
        if not self.grows or not whole:
            return min(p.data.ranks)
        done, x = p.data.ran, self.on
        if p is self.run and x is not None and x.state == "running":
            done = min(max(done + self.now_ns - x.start_ns, self.ops_ns(p, p.op)), self.ops_ns(p, x.op_end))
        own = [self.pass_ns(shape_of([s]), s.role == "decode", shape_of([s]).logit_rows > 0) for s in p.segments]
        return min((c, k + self.grows * n * done / whole) for (c, k), n in zip(p.data.ranks, own))

    def stops(self, p, top):
        """For a request that goes before all of it and finds memory; where work is lost, not for ever."""
        if self.param["preempt"] == "iteration" or p.data.finish or self.rank(top)[:2] >= self.pass_rank(p) or len(self.paused) == 16:
            return False
        room, lossy = self.kv_free_tokens, self.param["kv"] != "checkpoint"
        room += sum(r.kv_tokens + states(self, r.model) - r.kv_state_tokens for r in self.ready if self.place(r) > self.place(top) and self.gives(r))
        if lossy:
            room += sum(s.n_tokens + s.request.kv_tokens + states(self, s.request.model) for s in p.segments)
        cached = self.kv_cached_tokens([top])[0] if self.is_cached(top) else 0
        need = top.kv_tokens if top.kv_swapped else min(max(1, top.prefill_left), self.param["token_budget"]) + cached
        need += top.kv_state_tokens
        return (need <= room and
                not (lossy and max(self.losses.get(s.request.id, 0) for s in p.segments) == 16))

    def give_up(self, p):
        self.paused.remove(p)
        self.cancel(p)
        self.sync()
        for r in (s.request for s in p.segments if not s.request.left):
            self.losses[r.id] = self.losses.get(r.id, 0) + 1
            if self.param["kv"] == "swap" and r.kv_tokens:
                self.kv(r, "flash")
            else:
                self.lose(r)
                self.ready.append(r)

    def resume(self, p, finish):
        self.paused.remove(p)
        self.run = p
        p.data.began += self.now_ns - p.data.since
        p.data.finish = finish

    def schedule(self):
        for p in list(self.paused) if self.param["kv"] != "checkpoint" else []:
            self.give_up(p)
        self.gap.schedule()
        self.refresh()
        top = min(self.welcome(), key=self.rank, default=None)
        if self.run is not None:
            self.watch(top)
            return
        old = min(reversed(self.paused), key=self.pass_rank, default=None)
        while top is not None and top.kv_swapped and (old is None or self.rank(top)[:2] < self.pass_rank(old)) and self.back(top):
            top = min(self.welcome(), key=self.rank, default=None)
        if old is not None and (top is None or self.rank(top)[:2] >= self.pass_rank(old)):
            self.resume(old, False)
        else:
            self.begin(self.fill())
            if self.run is None and old is not None:
                self.resume(old, True)
            elif self.run is None and top is not None:
                self.first_alone()
        if self.run is not None:
            how = {"iteration": "pass", "reset": "kernel"}.get(self.param["preempt"], self.param["preempt"])
            self.on = self.launch(self.run, self.device, yield_=how, inflight=self.param["inflight"])
            self.asked = False

    def watch(self, top):
        if self.on is not None and not self.asked and top is not None and self.stops(self.run, top):
            killed = self.param["preempt"] == "reset"
            self.preempt(self.on, now=killed or self.param["level"] == "3", discard=killed, drain=not killed and self.param["level"] == "1")
            self.asked = True

    def first_alone(self):
        """Nobody at the front fits: the first to keep memory does, by itself; at the last what sessions keep gives way."""
        while self.run is None:
            r = min(self.welcome(), key=self.place, default=None)
            if r is None:
                return
            if r.kv_swapped:
                while not self.back(r):
                    last = max((x for x in self.ready if x is not r and self.gives(x)), key=self.place, default=None)
                    if last is None or self.place(last) < self.place(r):
                        break
                    self.lose(last)
                else:
                    return
            else:
                self.begin([self.piece(r, self.param["token_budget"])], True)
            if self.run is None and self.gap.yields():
                self.begin(self.fill())
            elif self.run is None:
                return

    def refresh(self):
        pass


class Queues(Plain):
    """Two lists: who waits, in order of arrival, and who is in progress."""

    def init(self):
        super().init()
        self.waits, self.runs = [], []

    def request_arrived(self, r):
        self.waits.append(r)

    def request_cancelled(self, r):
        self.waits, self.runs = ([x for x in q if x is not r] for q in (self.waits, self.runs))

    def pass_done(self, p):
        self.run = None
        self.runs = [r for r in self.runs if not r.left]
