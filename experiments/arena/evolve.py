#!/usr/bin/env python3
"""A plain evolutionary search on `xpusim arena judge`: parameters of policies are drawn again and joined.

    experiments/arena/evolve.py [options] POLICY[:K=V,..] ...

Every candidate is judged on the public split with few replications, and the ledger counts it. The best are judged again
with all replications, and the log names them in order. With --select P they are not: replications go on for those of them
that are not shown to be behind, until one is the best with probability P (docs/concepts/selection.md). It is the best by
its mean gain, and not by losses and goals. The sealed split is not touched: judge the chosen one by hand.

The fitness is ln(score) - sum of losses / 4, where a loss is how much more than 1 % a metric is worse at a point, plus
what the goal lacks: --goal POINT:METRIC=GAIN, for example 125h-3b-double:proactive.e2e_s.mean=1.34. --losses W states
another weight than 1 / 4, and 0 searches for the score alone.

The result depends on the policies, options and seed alone.
"""
import argparse
import json
import math
import os
import random
import subprocess
import sys

XPUSIM = os.environ.get("XPUSIM", "build/xpusim")
BATCH = 40  # candidates of a generation, judged by one process
KEPT = 16  # parents
TRIES = 1000  # draws in which no new candidate came
FINAL = 24  # judged again with all replications
LEFT_OUT = ("gap_kv", "gap_s", "flash", "speculate", "verify_rows", "draft_ms",  # no suite has what they act on
            "limit_s")  # the time that a program has


def parameters(policy):
    out = subprocess.run([XPUSIM, "list", "policy", policy, "--json"], capture_output=True, text=True)
    if out.returncode != 0:
        sys.exit(out.stderr)
    return [p for p in json.loads(out.stdout)["params"] if p["name"] not in LEFT_OUT]


def draw(rng, p):
    if p["type"] == "boolean":
        return rng.choice(["true", "false"])
    if p["type"] == "choice":
        return rng.choice(p["choices"])
    low, high = (fallback if p[end] is None else p[end] for end, fallback in (("min", 0), ("max", 1e9)))
    preset = float(p["default"])
    if preset == 0 and high >= 1e6:  # none, or a time of any scale
        return rng.choice(["0", f"{math.exp(rng.uniform(math.log(0.01), math.log(100))):.3g}"])
    if low == 0 and high <= 1:
        return f"{rng.uniform(low, high):.3g}"
    if preset >= 1e5:  # unlimited
        value = math.exp(rng.uniform(0, math.log(16384)))
    elif preset > 0:
        value = preset * math.exp(rng.uniform(-math.log(8), math.log(8)))
    else:
        value = rng.uniform(low, min(high, 64))
    value = min(max(value, low), high)
    return f"{value:.3g}" if p["type"] == "number" else str(round(value))


def parse(text):
    policy, _, rest = text.rpartition(":")
    return (policy, dict(kv.split("=", 1) for kv in rest.split(","))) if "=" in rest else (text, {})


def spec(candidate):
    policy, chosen = candidate
    return policy + (":" + ",".join(f"{k}={v}" for k, v in sorted(chosen.items())) if chosen else "")


def child(rng, parents, tables):
    policy, chosen = rng.choice(parents)
    mate = rng.choice([c for p, c in parents if p == policy])
    keys = sorted(set(chosen) | set(mate))
    chosen = {k: v for k in keys for v in [rng.choice([chosen, mate]).get(k)] if v is not None}
    for _ in range(rng.choice([1, 1, 2, 3])):
        p = rng.choice(tables[policy])
        if p["name"] in chosen and rng.random() < 0.3:
            del chosen[p["name"]]
        else:
            chosen[p["name"]] = draw(rng, p)
    return policy, chosen


class Judge:
    def __init__(self, args):
        self.args = args
        self.goals = []
        for g in args.goal:
            place, _, gain = g.rpartition("=")
            self.goals.append((*place.split(":"), math.log(float(gain))))

    def ask(self, suite, candidates, *more):
        """A judgement for each that can be judged: (judgement, candidate)."""
        names = [spec(c) for c in candidates]
        run = subprocess.run([XPUSIM, "arena", "judge", *names, "--suite", suite, "--ledger", self.args.ledger,
                              "--json", "-q", "--jobs", str(self.args.jobs), *more], capture_output=True, text=True)
        if run.returncode == 0:
            d = json.loads(run.stdout)
            return list(zip(d["judgements"] if len(names) > 1 else [d], candidates))
        if len(candidates) == 1:
            self.refused = run.stderr
            return []
        return [one for c in candidates for one in self.ask(suite, [c], *more)]  # one of them cannot be

    def select(self, suite, candidates, confidence, indifference):
        """The best of them, with few runs: (the selection, the candidate); None: it cannot be said."""
        names = [spec(c) for c in candidates]
        run = subprocess.run([XPUSIM, "arena", "judge", *names, "--suite", suite, "--json", "-q",
                              "--jobs", str(self.args.jobs), "--select", str(confidence), "--indifference", str(indifference)],
                             capture_output=True, text=True)
        if run.returncode not in (0, 1):
            sys.exit(run.stderr)
        found = json.loads(run.stdout)["selection"]
        return found, next((c for c in candidates if spec(c) == found["best"]), None)

    def fitness(self, j):
        losses = lacks = 0.0
        for point in j["cells"].values():
            for m in point.values():
                losses += max(0.0, -math.log(m["gain"]) - 0.01) if m["gain"] else 0.0
                losses += m["lost"]
        for point, metric, wanted in self.goals:
            gain = j["cells"][point][metric]["gain"]
            lacks += max(0.0, wanted - math.log(gain)) if gain else 1.0
        return math.log(j["score"]) - self.args.losses * losses - lacks


def describe(j, c):
    names = ", ".join(r["name"] for r in j["significant_regressions"]) or "none"
    return (f"score {j['score']:.4f} [{j['interval']['low']:.4f}, {j['interval']['high']:.4f}], regressions: {names}: "
            f"{spec(c)}")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("policies", nargs="+", metavar="POLICY")
    parser.add_argument("--candidates", type=int, default=2000)
    parser.add_argument("--replications", type=int, default=3, help="of the search")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--suite", default="laptop-2026.1", help="of the search: perhaps some points of it")
    parser.add_argument("--final-suite", help="of the last judgements")
    parser.add_argument("--vary", metavar="NAME,..", help="the only parameters that are drawn (default: all)")
    parser.add_argument("--losses", type=float, default=0.25, metavar="W", help="weight of losses in the fitness")
    parser.add_argument("--goal", action="append", default=[], metavar="POINT:METRIC=GAIN")
    parser.add_argument("--jobs", type=int, default=1)
    parser.add_argument("--final", type=int, default=FINAL, help="candidates judged again with all replications")
    parser.add_argument("--select", type=float, metavar="P", help="probability that the best of the last ones is named")
    parser.add_argument("--indifference", type=float, default=1.0, metavar="PERCENT", help="a gain that does not matter")
    parser.add_argument("--ledger", default="campaign.csv")
    parser.add_argument("--log", default="campaign.log")
    args = parser.parse_args()
    rng = random.Random(args.seed)
    judge = Judge(args)
    starts = [parse(p) for p in args.policies]
    tables = {p: [q for q in parameters(p) if args.vary is None or q["name"] in args.vary.split(",")] for p, _ in starts}
    seen, ranked = set(), []
    with open(args.log, "w", encoding="utf-8") as log:
        while len(seen) < args.candidates:
            batch = []
            parents = [c for _, c in ranked[:KEPT]] or starts
            tries = 0
            while len(batch) < min(BATCH, args.candidates - len(seen)) and tries < TRIES:
                c = starts[len(seen)] if len(seen) < len(starts) else child(rng, parents, tables)
                tries += 1
                if spec(c) not in seen:
                    seen.add(spec(c))
                    batch.append(c)
                    tries = 0
            if not batch:  # a policy of few parameters has few settings
                break
            found = judge.ask(args.suite, batch, "--replications", str(args.replications))
            ranked = sorted(ranked + [(judge.fitness(j), c) for j, c in found], key=lambda x: -x[0])[:400]
            if not ranked:
                sys.exit(judge.refused)
            print(f"{len(seen)} candidates, best fitness {ranked[0][0]:.4f}: {spec(ranked[0][1])}", file=log, flush=True)
        if args.select:
            last = [c for _, c in ranked[:args.final]]
            found, best = judge.select(args.final_suite or args.suite, last, args.select, args.indifference)
            print(f"selected of {len(last)} with {found['runs']} runs for {found['equal_runs']}, "
                  f"{'decided' if found['decided'] else 'undecided'}: {spec(best) if best else 'none'}", file=log, flush=True)
            return 0
        again = sorted(judge.ask(args.final_suite or args.suite, [c for _, c in ranked[:args.final]]), key=lambda x: -judge.fitness(x[0]))
        for j, c in again:
            print(f"all replications: fitness {judge.fitness(j):.4f}, {describe(j, c)}", file=log, flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
