"""A second engine: it replays the decisions of a run on devices that share the DDR. Its rules are those of hwmodels/README.md,
docs/concepts/segments.md and docs/clauses.md 0.2. Devices are serial, and all requests are first turns of one model."""
import math

from drafted import Drafts
from priced import Machine, Shape


def ns(microseconds):
    return round(microseconds * 1000)


def pccs(sim, demands, capacity):
    """Three regions of the others' demand y: up to what is free, up to the balance point, and from there on."""
    minor, balance, got = sim["contention_minor"], sim["contention_balance_frac"] * capacity, []
    for x in demands:
        y, free = sum(demands) - x, max(0.0, capacity - x)
        first = 1 + minor * free / capacity
        last = max(first, x / max(capacity - balance, capacity / 2))
        between = first + (last - first) * (y - free) / (balance - free) if free < y < balance else last
        got.append(x / (1 + minor * y / capacity if y <= free else between))
    return [g * min(1, capacity / sum(got)) for g in got]


def shares(model, machine, flows, working):
    """Returns the part of the DDR that each flow (demand, device) gets while these devices work."""
    ddr, demands = machine.soc["ddr"], [f[0] for f in flows]
    capacity = max([ddr.get("together", 1) * ddr["peak"] * 1e9, *demands])
    if model == "none" or (len(flows) < 2 and model != "beside"):
        return demands
    if model == "proportional":
        return [x * min(1, capacity / sum(demands)) for x in demands]
    if model == "pccs":
        return pccs(machine.sim, demands, capacity)
    weights = [machine.devices[d].get("ddr_weight", 1) if model == "weighted" else 1 for _, d in flows]
    got, left = [0.0] * len(flows), capacity
    waiting = sorted(range(len(flows)), key=lambda i: demands[i] / weights[i])
    while waiting:  # max-min
        i, weight = waiting[0], sum(weights[k] for k in waiting)
        got[i] = min(demands[i], left * weights[i] / weight)
        left -= got[waiting.pop(0)]
    bound = [min(1, x / (max(machine.curve(d, one)["bandwidth"] for one in (False, True)) * 1e9)) for x, d in flows]
    if model == "latency":
        total = sum(got)
        got = [g / (1 + ddr.get("queueing", 0.3) * b * ((total - g) / capacity)) for g, b in zip(got, bound)]
    elif model == "beside":
        slow = [machine.devices[d].get("beside", 0) * b if working - {d} else 0 for (_, d), b in zip(flows, bound)]
        got = [g / (1 + s) for g, s in zip(got, slow)]
    return got


class Pass:
    def __init__(self, segments, shape, fused, layers):
        self.segments, self.shape, self.fused = segments, shape, fused
        self.ops = layers * (1 if fused else 3) + (shape.logits > 0)
        self.op = self.done = 0  # the first op that is not complete, and rows or columns of it that are
        self.planned, self.planned_rows, self.live = 0, 0, 0
        self.devices, self.before = set(), set()  # of this op, and of the one before

    def kind(self, op):
        head = op == self.ops - 1 and self.shape.logits > 0
        return "HEAD" if head else "LAYER" if self.fused else ("QKV", "MHA", "FFN")[op % 3]

    def rows(self, op):
        return self.shape.logits if self.kind(op) == "HEAD" else self.shape.rows

    def advance(self, amount, whole, device):
        """So many rows or columns of the present op are done."""
        self.done += amount
        self.devices.add(device)
        if self.done >= whole:
            self.op, self.done, self.before, self.devices = self.op + 1, 0, self.devices, set()


class Launch:
    def __init__(self, number, p, spec, at):
        self.number, self.p, self.spec, self.at, self.device = number, p, spec, at, spec["device"]
        self.kernels, self.k, self.stop_at = [], 0, None
        self.begun = self.running = self.between = False

    def may_stop(self):
        """Is it between two kernels at its yield point?"""
        op, last = self.kernels[self.k][0], self.kernels[self.k - 1][0] if self.k > 0 else None
        layer = self.p.kind(op) in ("QKV", "LAYER", "HEAD")
        return {0: True, 1: op != last, 2: op != last and layer, 3: False}[self.spec["yield"]]


class Engine:
    def __init__(self, config, log, requests):
        """Requests: number to tokens of prompt and answer, and whether a user waits."""
        self.machine, self.log, self.requests = Machine(config), log, requests
        self.drafts = Drafts(self.machine.sim["speculation"], config["seed"])
        self.contention, self.soc = self.machine.sim["contention"], self.machine.soc
        self.names = [d["name"] for d in self.machine.devices]
        self.now, self.passes, self.launches = 0, {}, {}
        self.queues = [[] for _ in self.names]
        self.jobs, self.waits = [], []  # [ns left, rate, demand, launch, since, end], and (end, what, about)
        self.compiles, self.tails = [], 0
        self.held, self.tokens, self.seen, self.steps = {}, {}, {}, {}
        self.joules, self.peak_watts, self.kv_blocks = {}, 0.0, 0
        self.moved = self.asked = self.demand = self.carried = 0.0
        self.intervals = 0

    # ---- decisions ----

    def act(self, what, words):
        args = dict(w.split("=") for w in words if "=" in w)
        if what == "form":
            self.form(args["fused"] == "1", [[int(x) for x in w.split(":")] for w in words if ":" in w])
        elif what == "launch":
            self.launch({k: int(v) for k, v in args.items()})
        elif what == "preempt":
            v = self.launches[int(args["launch"])]
            ahead = 0 if self.machine.devices[v.device]["can_withdraw"] else v.spec["inflight"] - 1
            v.stop_at = v.k + (ahead if v.between or not v.running else ahead + 1)
        elif what == "compile":
            c, key = self.soc["compiler"], tuple(words)
            self.compiles.append((key, round(c["fixed"] * 1e9 + c["per_token"] * 1e6 * int(words[0].split(":")[1]))))
        elif what == "drop" and tuple(words) in [key for key, _ in self.compiles]:
            if self.compiles[0][0] == tuple(words):
                self.waits = [w for w in self.waits if w[1] != "compiled"]
            self.compiles = [c for c in self.compiles if c[0] != tuple(words)]
        elif what not in ("drop", "timer", "note"):
            raise ValueError(f"a decision that this engine does not know: {what} {words}")

    def form(self, fused, segments):
        m, shape = self.machine.model, Shape(self.machine.model.m.get("sliding_window", 0))
        out = []
        for request, role, n in segments:
            first = self.held.get(request, 0)
            self.held[request] = first + n
            prompt = role in (0, 4)
            logits = int(self.held[request] == self.requests[request][0]) if prompt else n
            shape.add(first, n, prompt, logits)
            out.append((request, first, n, logits, role == 2))
        block = self.machine.sim["kv_block_tokens"]
        states = math.ceil(4 * m.m.get("recurrent_state", 0) * m.m.get("recurrent_layers", 0) / (block * m.kv_bytes))
        self.kv_blocks = max(self.kv_blocks, sum(math.ceil(n / block) + states for n in self.held.values()))
        self.passes[len(self.passes) + 1] = Pass(out, shape, fused, m.layers)

    def launch(self, spec):
        p = self.passes[spec["pass"]]
        v = self.launches[len(self.launches) + 1] = Launch(len(self.launches) + 1, p, spec, self.now)
        if p.live == 0:
            p.planned, p.planned_rows = p.op, p.done
        for i in range(spec["ops"]):
            op = p.planned + i
            rows = spec["rows"] if i == 0 else p.rows(op)
            kind = p.kind(op)
            chunk = spec["chunk"] if kind not in ("MHA", "LAYER") and rows > 1 else 0
            for begin in range(0, rows, chunk or rows):
                n = min(rows - begin, chunk or rows)
                v.kernels.append((op, kind, rows, n, self.machine.kernel(v.device, kind, n, chunk or n, p.shape, spec["columns"])))
        whole = 1024 if spec["columns"] else p.rows(p.planned)
        p.planned_rows += spec["columns"] or spec["rows"]
        if spec["ops"] > 1 or p.planned_rows >= whole:
            p.planned, p.planned_rows = p.planned + spec["ops"], 0
        p.live += 1
        self.queues[v.device].append(v)

    # ---- launches ----

    def end(self, v):
        p = v.p
        self.queues[v.device].remove(v)
        p.live -= 1
        if v.spec["columns"]:
            p.advance(v.spec["columns"] if v.k == len(v.kernels) else 0, 1024, v.device)
        else:
            for op, _, _, n, _ in v.kernels[: v.k]:
                p.advance(n, p.rows(op), v.device)
        if p.op == p.ops:
            self.tails += 1
            sample = ns(self.soc["host"]["sample"])
            self.waits.append((self.now + sample * sum(s[3] for s in p.segments), "sampled", p))

    def sampled(self, p):
        self.tails -= 1
        for request, first, rows, logits, verifies in p.segments:
            tokens, wanted = self.tokens.setdefault(request, []), self.requests[request][1]
            emits = int(logits > 0)
            if verifies:
                accepted = self.drafts.accepted(request, self.requests[request][2], self.steps.get(request, 0), rows - 1) if rows > 1 else 0
                emits = min(1 + accepted, wanted - len(tokens))
                self.held[request] = first + emits
            if tokens:
                self.steps[request] = self.steps.get(request, 0) + 1
            tokens += [self.now] * emits
            if len(tokens) == wanted:
                del self.held[request]

    def begin(self):
        """Gives the devices work from this instant on."""
        host = self.soc["host"]
        for d, queue in enumerate(self.queues):
            if queue and not queue[0].begun:
                v, device = queue[0], self.machine.devices[d]
                v.begun = True
                lead = ns(host["schedule"]) + ns(device["submit"]) + ns(device["completion"])
                lead += ns(host["sync"]) if v.p.before - {d} else 0
                self.waits.append((max(self.now, v.at + lead), "ready", v))
            for v in queue:
                if v.between and v.running:
                    v.between = False
                    t, loads, moved = v.kernels[v.k][4]
                    self.start(v, loads, moved / (loads / 1e9))
        if self.compiles and not any(w[1] == "compiled" for w in self.waits):
            self.waits.append((self.now + self.compiles[0][1], "compiled", None))

    def start(self, v, left, demand):
        self.jobs.append([float(left), 0.0, demand, v, self.now, None])
        v.since = self.now if demand > 0 else v.since

    def stop(self):
        for v in [v for q in self.queues for v in q if v.stop_at is not None and v.begun]:
            if not v.running:
                self.waits = [w for w in self.waits if w[2] is not v]
                self.end(v)
            elif v.between and v.k >= v.stop_at and v.may_stop():
                v.between = False
                self.end(v)

    def finish(self, job):
        v = job[3]
        self.jobs.remove(job)
        _, kind, _, _, (t, loads, _) = v.kernels[v.k]
        if job[2] > 0 and loads < t:
            self.start(v, t - loads, 0.0)
            return
        self.seen.setdefault(v.number, []).append((kind, v.since, self.now))
        v.k, v.between = v.k + 1, True
        if v.k == len(v.kernels):
            self.end(v)

    def over(self, wait):
        _, what, about = wait
        self.waits.remove(wait)
        if what == "ready":
            about.running = about.between = True
        elif what == "sampled":
            self.sampled(about)
        else:
            del self.compiles[0]

    # ---- time ----

    def settle(self):
        active = [j for j in self.jobs if j[2] > 0]
        got = shares(self.contention, self.machine, [(j[2], j[3].device) for j in active], {j[3].device for j in self.jobs})
        rates = {id(j): g / j[2] for j, g in zip(active, got)}
        for j in self.jobs:
            rate = min(1.0, rates.get(id(j), 1.0))
            if rate != j[1]:
                j[0], j[1], j[4] = j[0] - (self.now - j[4]) * j[1], rate, self.now
                j[5] = self.now + math.ceil(j[0] / rate)
        self.demand, self.carried = sum(j[2] for j in active), sum(got)

    def watts(self):
        thread = self.soc["compiler"]["power"]
        out = {"platform": self.soc["idle_power"], "compiler": thread if self.compiles else 0.0, "host": thread * self.tails}
        for name, d, queue in zip(self.names, self.machine.devices, self.queues):
            running = [v for v in queue if v.running]
            prompt = any(v.p.shape.prompt_rows > 0 for v in running)
            out[name] = d["prefill_power" if prompt else "decode_power"] if running else d["idle_power"]
        return out

    def advance(self, to):
        passed = to - self.now
        if passed > 0:
            watts = self.watts()
            self.peak_watts = max(self.peak_watts, sum(watts.values()))
            for name, w in watts.items():
                self.joules[name] = self.joules.get(name, 0.0) + w * passed / 1e9
            self.asked += self.demand * passed / 1e9
            self.moved += self.carried * passed / 1e9
            self.intervals += 1
        self.now = to

    def run(self):
        log = list(self.log)
        while log or self.jobs or self.waits:
            times = [j[5] for j in self.jobs] + [w[0] for w in self.waits] + [log[0][0] for _ in log[:1]]
            self.advance(min(times))
            for j in [j for j in self.jobs if j[5] <= self.now]:
                self.finish(j)
            while due := [w for w in self.waits if w[0] <= self.now]:
                self.over(due[0])
            while log and log[0][0] <= self.now:
                _, what, words = log.pop(0)
                self.act(what, words)
            self.stop()
            self.begin()
            self.settle()
            if not log and all(len(self.tokens.get(r, [])) == n for r, (_, n, _) in self.requests.items()):
                break
