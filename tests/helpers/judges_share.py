"""time-share by clauses C.4 b, policies/README.md and the head of common/share.h, with plain lists (judges.py)."""
from judges import DEVICE, Param, Queues


class TimeShare(Queues):
    """Processor sharing among the first to arrive: who has been served least gets the next turn."""
    name = "time-share-judge"
    params = (DEVICE, Param("max_requests", 4, "", 1, 16), Param("efficiency", 0.95, "", 0.01, 1),
              Param("quantum_ms", 5.0, "", 0, 1000000))

    def init(self):
        super().init()
        self.got, self.until, self.shared = {}, 0, None
        device = self.machine.devices[self.device]
        self.alike = device.sharing == "time_shared"
        self.most = min(self.param.get("max_requests", self.param.get("slots")), device.max_shared if self.alike else 16)

    def served(self, r):
        """Up to now."""
        x = self.on
        return self.got[r.id] + (self.now_ns - x.start_ns if x is not None and x.start_ns is not None and x.pass_ is r.pass_ else 0)

    def launch_done(self, x):
        self.on = None
        self.got[x.pass_.segments[0].request.id] += self.now_ns - x.start_ns
        if self.shared is not None:  # the part of the turn that several shared
            self.until = self.now_ns + round((self.now_ns - max(self.shared, x.start_ns)) * (1 / self.param.get("efficiency", 1) - 1))

    def pass_done(self, p):
        self.runs = [r for r in self.runs if not r.left]

    def forms(self, r):
        self.form([self.piece(r, 1 << 30)], r.state == "decode")
        return self.sync()

    def gives(self, r):
        """Nothing of it is on the device or at the host."""
        return r.pass_ is None or r.pass_.state == "ready" and r.pass_.op < r.pass_.n_ops

    def goes_on(self, r):
        """Short of KV, the last that came into service starts over, from the front of those that wait."""
        while not self.forms(r):
            last = next((x for x in reversed(self.runs[self.runs.index(r) + 1:]) if self.gives(x)), None)
            if last is None:
                return
            if last.pass_ is not None:
                self.cancel(last.pass_)
                self.sync()
            if last.kv_tokens:
                self.kv(last, "nowhere")
                self.sync()
            self.runs.remove(last)
            self.waits.insert(0, last)

    def refused(self, what):
        pass

    def turn(self, p):
        """Whole ops of at least a quantum; all that is left where nobody else is in service."""
        if len(self.runs) == 1:
            return p.n_ops - p.op
        n, most = 1, self.param["quantum_ms"] * 1e6
        while p.op + n < p.n_ops and self.ops_ns(p, p.op + n) - self.ops_ns(p, p.op) < most:
            n += 1
        return n

    def schedule(self):
        for r in list(self.runs):
            if r in self.runs and r.pass_ is None:
                self.goes_on(r)
        while self.waits and len(self.runs) < self.most and self.forms(self.waits[0]):
            r = self.waits.pop(0)
            self.got[r.id] = min(map(self.served, self.runs), default=0)
            self.runs.append(r)
        if self.alike:  # all at once, and the device shares itself out
            for r in self.runs:
                if r.pass_ is not None and r.pass_.state == "ready" and r.pass_.op < r.pass_.n_ops:
                    self.launch(r.pass_, self.device, yield_="pass")
            return
        if self.on is not None:
            if len(self.runs) > 1 and self.shared is None:
                self.preempt(self.on)
                self.shared = self.now_ns
            return
        if self.now_ns < self.until:
            self.set_timer(self.until)
            return
        able = [r for r in self.runs if r.pass_ is not None and r.pass_.state == "ready" and r.pass_.op < r.pass_.n_ops]
        r = min(able, key=lambda r: self.got[r.id], default=None)
        if r is not None:
            self.shared = self.now_ns if len(self.runs) > 1 else None
            self.on = self.launch(r.pass_, self.device, n_ops=self.turn(r.pass_), yield_="op")


class LlamaPs(TimeShare):
    """The same on llama.cpp's slots, where turns cost nothing."""
    name = "llama-ps-judge"
    params = (DEVICE, Param("form", "ps", "", choices=("ps",)), Param("slots", 4, "", 1, 16), Param("quantum_ms", 5.0, "", 0, 1000000))
