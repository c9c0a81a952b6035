#!/usr/bin/env python3
"""`xpusim graphs` worked out again: the numbers of each strategy from its schedule, the schedule from the rules of the machine, the
text from the JSON, and every combination of options that is refused."""
import json
import random
import subprocess
import sys

XPUSIM = sys.argv[1]
BAD, CHECKED = [], 0
NAMES = ["unified-g1", "unified-g2", "keep-both", "sync", "naive-async", "progressive", "late-start", "farthest-next-use", "exact"]


def run(*words):
    return subprocess.run([XPUSIM, "graphs", *words], capture_output=True, text=True, stdin=subprocess.DEVNULL, timeout=60)


def same(what, got, want):
    global CHECKED
    CHECKED += 1
    if got != want:
        BAD.append(f"{what}: {got}, worked out {want}")


def numbers_of(s, times, chunks, keep_old, name, what):
    """What a schedule comes to; each bar has the length that the instance says."""
    bars = s["intervals"]
    compute = [b for b in bars if b["kind"] != "load_g2"]
    loads = [b for b in bars if b["kind"] == "load_g2"]
    for b in bars:
        row = {"compute_g1": 0, "compute_g2": 1, "load_g2": 2}[b["kind"]]
        same(f"{what}: length of {b}", b["end"] - b["start"], times[row][b["block"] - 1])
    same(f"{what}: order", [(b["chunk"], b["block"]) for b in compute], [(c + 1, b + 1) for c in range(chunks) for b in range(len(times[0]))])
    stall = sum(b["start"] - a["end"] for a, b in zip(compute, compute[1:])) + compute[0]["start"]
    prefill, switch = max(b["end"] for b in compute), max([b["end"] for b in loads], default=0)
    same(f"{what}: numbers", [s[k] for k in ("total", "prefill_end", "switch_end", "stall")], [max(prefill, switch), prefill, switch, stall])
    n = len(times[0])
    # the old graph stays only where its block computes once more, from the start of the load on
    both = any(c["block"] == b["block"] and c["start"] >= b["start"] for b in loads for c in compute)
    memory = 2 * n if name == "keep-both" else n + (1 if keep_old and both else 0)
    same(f"{what}: memory", s["memory_peak_blocks"], memory)
    if loads:
        same(f"{what}: loads", sorted(b["block"] for b in loads), list(range(1, n + 1)))


def instance(rnd, keep_old):
    n, chunks = rnd.randint(1, 5), rnd.randint(1, 4)
    p = [rnd.randint(1, 15) for _ in range(n)]
    times = [p, [x + rnd.randint(0, 4) for x in p], [rnd.randint(0, 30) for _ in range(n)]]
    words = [w for name, row in zip(("--p", "--d", "--s"), times) for w in (name, ",".join(map(str, row)))] + ["--chunks", str(chunks)]
    words += ["--keep-old"] if keep_old else []
    what = " ".join(words)
    tree = json.loads(run(*words, "--gantt", "--json").stdout)
    text = run(*words).stdout.split("\n")
    best = "left-shifted" if keep_old else "exact"
    names = NAMES[:-1] + [best]
    same(f"{what}: strategies", list(tree["strategies"]), names)
    same(f"{what}: totals", tree["totals"], {k: v["total"] for k, v in tree["strategies"].items()})
    least = tree["strategies"][best]["total"]
    want = [f"{n} block{'s'[n == 1:]}, {chunks} chunk{'s'[chunks == 1:]}, G1 {'kept while G2 loads' if keep_old else 'freed before G2 loads'}", "",
            "%-18s %10s %8s %10s %10s %8s %7s" % ("strategy", "total", "/best" if keep_old else "/exact", "prefill", "switch", "stall", "memory")]
    for name, s in tree["strategies"].items():
        numbers_of(s, times, chunks, keep_old, name, f"{what}: {name}")
        same(f"{what}: {name}: the ratio", "ratio_to_exact" in s, not keep_old or tree["strategies"][best]["lower_bound"] == least)
        if "ratio_to_exact" in s:
            same(f"{what}: {name}: the ratio", abs(s["ratio_to_exact"] - s["total"] / least) < 1e-12, True)
        if name not in ("unified-g1", "unified-g2", "keep-both"):
            same(f"{what}: {name} is not below the best", s["total"] >= least, True)
        want.append("%-18s %10d %8.3f %10d %10d %8d %7d" % (name, s["total"], s["total"] / least, s["prefill_end"], s["switch_end"], s["stall"], s["memory_peak_blocks"]))
    same(f"{what}: text", [l for l in text if l], [l for l in want if l])
    one = json.loads(run(*words, "--strategy", "sync", "--json").stdout)
    same(f"{what}: one strategy", list(one["strategies"]), ["sync"])
    same(f"{what}: no schedule unless asked", "intervals" in one["strategies"]["sync"], False)
    same(f"{what}: the same number", one["totals"]["sync"], tree["totals"]["sync"])
    return words, tree


class Machine:
    """One compute server and one loader, as hwmodels/graphs.h has them; it goes from instant to instant at which something ends."""

    def __init__(self, times, chunks, keep_old):
        self.p, self.d, self.s = times
        self.n, self.keep_old, self.all = len(self.p), keep_old, len(self.p) * chunks
        self.now, self.done, self.busy, self.load, self.new = 0, 0, None, None, set()
        self.prefill = self.switch = 0

    def cost(self, place):
        return self.d[place % self.n] if place % self.n in self.new else self.p[place % self.n]

    def begin(self, block):
        self.load = (block, self.now + self.s[block])

    def loaded(self):
        self.new.add(self.load[0])
        self.switch, self.load = self.now, None

    def step(self):
        """False: nothing is under way."""
        if self.load and self.load[1] == self.now:
            self.loaded()
            return True
        if self.busy is None and self.done < self.all and (self.keep_old or not self.load or self.load[0] != self.done % self.n):
            self.busy = self.now + self.cost(self.done)
        ends = [t for t in (self.busy, self.load and self.load[1]) if t is not None]
        if not ends:
            return False
        self.now = min(ends)
        if self.busy == self.now:
            self.busy, self.done, self.prefill = None, self.done + 1, self.now
        if self.load and self.load[1] == self.now:
            self.loaded()
        return True

    def until(self, done):
        while self.done < done and self.step():
            pass

    def result(self):
        while self.step():
            pass
        rest = [b for b in range(self.n) if b not in self.new]
        self.switch = self.now + sum(self.s[b] for b in rest) if rest else self.switch
        return {"total": max(self.prefill, self.switch), "prefill_end": self.prefill, "switch_end": self.switch}


def progressive(m, start):
    """The last block whose load ends before the computes that hide it come to that block; else a compute without a load."""
    m.until(start)
    while m.done < m.all:
        for b in sorted(set(range(m.n)) - m.new, reverse=True):
            hidden = k = 0
            while m.done + k < m.all and (k == 0 or hidden < m.s[b]):
                hidden += m.cost(m.done + k)
                k += 1
            if b not in [(m.done + i) % m.n for i in range(k)]:
                m.begin(b)
                m.until(m.done + k)
                break
        else:
            m.until(m.done + 1)
    return m.result()


def farthest(m, start):
    """Of the loads that end before their block computes again, that of the block that does so last."""
    m.until(start)
    while True:
        first = m.done + (m.busy is not None)
        begins = {}
        at = m.now if m.busy is None else m.busy
        for place in range(first, m.all):
            begins.setdefault(place % m.n, at)
            at += m.cost(place)
        may = [b for b in range(m.n) if b not in m.new and (m.keep_old or m.busy is None or m.done % m.n != b)]
        fits = [(begins.get(b, float("inf")), b) for b in may if m.now + m.s[b] <= begins.get(b, float("inf"))]
        if m.load is None and fits:
            m.begin(max(fits)[1])
        if not m.step():
            return m.result()


def heuristics(rnd, keep_old):
    """Short times, of which many end at one instant."""
    n, chunks = rnd.randint(1, 5), rnd.randint(1, 4)
    p = [rnd.randint(1, 3) for _ in range(n)]
    times = [p, [x + rnd.randint(0, 2) for x in p], [rnd.randint(0, 8) for _ in range(n)]]
    words = [w for name, row in zip(("--p", "--d", "--s"), times) for w in (name, ",".join(map(str, row)))] + ["--chunks", str(chunks)]
    words += ["--keep-old"] if keep_old else []
    got = json.loads(run(*words, "--json").stdout)["strategies"]
    for name, rule, starts in (("progressive", progressive, [0]), ("late-start", progressive, range(n * chunks + 1)), ("farthest-next-use", farthest, range(n * chunks + 1))):
        want = min((rule(Machine(times, chunks, keep_old), q) for q in starts), key=lambda r: r["total"])
        same(f"{' '.join(words)}: {name}", {k: got[name][k] for k in want}, want)


def refusals():
    good = ["--p", "10,12", "--d", "11,12", "--s", "20,5", "--chunks", "2"]
    wide = ",".join(["1"] * 63)
    cases = [
        (["--p", wide], "--p: more than 62 blocks"), (["--s", wide], "--s: more than 62 blocks"),
        *((["--" + o, bad], f'--{o}: "{bad}" is not a list of integers such as 10,12,8') for o in "pds" for bad in (",", "1,", ",1", "a", "1 2", "-1", "1.5", "99999999999999999999", "1;2")),
        (["--random", "5", "--chunks", "2"], "graphs: --random goes with --seed, --keep-old and --json only"),
        (["--random", "5", "--gantt"], "graphs: --random goes with --seed, --keep-old and --json only"),
        (["--random", "5", "--strategy", "sync"], "graphs: --random goes with --seed, --keep-old and --json only"),
        (["--random", "5", "--nodes", "9"], "graphs: --random goes with --seed, --keep-old and --json only"),
        (["--random", "5", "--d", "1"], "graphs: --random goes with --seed, --keep-old and --json only"),
        (good + ["--seed", "1"], "graphs: --seed goes with --random"),
        (good + ["--strategy", "sink"], '--strategy: no strategy "sink", see xpusim graphs --help'),
        *((good[:i] + good[i + 2:], "graphs: --p, --d, --s and --chunks are needed (or --random)") for i in (0, 2, 4, 6)),
        (["--p", "1,2,3"] + good[2:], "graphs: --p, --d and --s hold 3, 2 and 2 values; one per block is needed in each"),
        (good[:2] + ["--d", "11"] + good[4:], "graphs: --p, --d and --s hold 2, 1 and 2 values; one per block is needed in each"),
        (good[:4] + ["--s", "1,2,3,4"] + good[6:], "graphs: --p, --d and --s hold 2, 2 and 4 values; one per block is needed in each"),
    ]
    for words, want in cases:
        r = run(*words)
        same(f"{' '.join(words)[:60]}: exit", r.returncode, 2)
        same(f"{' '.join(words)[:60]}: message", f"xpusim: error: {want}\n" in r.stderr, True)
    for words in (["--p", "0,012", "--d", "0,12", "--s", "0,0", "--chunks", "1"], good + ["--strategy", "all"], ["--random", "2", "--seed", "3", "--keep-old", "--json"]):
        same(f"{' '.join(words)}: exit", run(*words).returncode, 0)


def unfinished():
    """A budget of one state proves nothing: the bounds are printed, not a number under the name `exact`."""
    words = ["--p", "7,9,5,8,6,9", "--d", "8,9,7,9,8,9", "--s", "20,15,30,10,25,17", "--chunks", "3", "--nodes", "1"]
    r = run(*words)
    tree = json.loads(run(*words, "--json").stdout)
    s = tree["strategies"]["exact"]
    same("unfinished: finished", [s["finished"], tree["totals"]["exact"]], [False, None])
    same("unfinished: bounds", s["lower_bound"] <= s["total"], True)
    lines = [l for l in r.stdout.split("\n") if l.startswith("exact ")]
    same("unfinished: text", lines[0].startswith("exact              not finished: the optimum lies between %d and %d (" % (s["lower_bound"], s["total"])), True)
    sync = next(l for l in r.stdout.split("\n") if l.startswith("sync "))
    same("unfinished: no ratio", sync.split()[2], "-")
    same("unfinished: no ratio in JSON", any("ratio_to_exact" in x for x in tree["strategies"].values()), False)
    same("unfinished: exit", (r.returncode, run(*words, "--strategy", "exact").returncode, run(*words, "--strategy", "sync").returncode), (0, 1, 0))


def main():
    rnd = random.Random(5)
    for i in range(8):
        instance(rnd, i % 2 == 1)
    for i in range(40):
        heuristics(rnd, i % 2 == 1)
    refusals()
    unfinished()
    print("\n".join(f"FAILED: {b}" for b in BAD[:30]))
    print(f"graphs worked out again: {CHECKED}")
    return 1 if BAD or CHECKED < 500 else 0


if __name__ == "__main__":
    sys.exit(main())
