#!/usr/bin/env python3
"""Tunes policies alike, and judges the best setting of each: a table of Markdown.

    experiments/arena/alike.py [--candidates N] [--jobs N] [--folder DIR] [POLICY ...]

Each policy (default: every shipped one) gets the same number of settings, drawn by `evolve.py` from its own parameters and
judged for their score alone on the public split. The best is judged with all replications on the public split and on the
sealed one. The folder keeps the logs and one ledger. A policy whose log is whole is not tuned again.
"""
import argparse
import json
import os
import subprocess
import sys

XPUSIM = os.environ.get("XPUSIM", "build/xpusim")
EVOLVE = os.path.join(os.path.dirname(os.path.abspath(__file__)), "evolve.py")


def output(*command, **more):
    return subprocess.run(command, capture_output=True, text=True, check=True, **more).stdout


def best(args, policy, ledger):
    """The best setting of a policy and how many were tried."""
    log = os.path.join(args.folder, policy + ".log")
    if not os.path.exists(log) or "all replications:" not in open(log, encoding="utf-8").read():
        subprocess.run([sys.executable, EVOLVE, "--candidates", str(args.candidates), "--replications", str(args.replications),
                        "--losses", "0", "--final", "4", "--suite", args.suite, "--jobs", str(args.jobs),
                        "--ledger", ledger, "--log", log, policy], check=True)
    lines = open(log, encoding="utf-8").read().splitlines()
    tried = max(int(line.split()[0]) for line in lines if " candidates, " in line)
    first = next((line for line in lines if line.startswith("all replications:")), None)
    return first.rsplit(": ", 1)[1] if first else None, tried


def judged(args, setting, ledger, *more):
    d = json.loads(output(XPUSIM, "arena", "judge", setting, "--suite", args.suite, "--ledger", ledger, "--json", "-q",
                          "--jobs", str(args.jobs), *more))
    return d["score"], d["interval"]["low"], d["interval"]["high"], len(d["significant_regressions"])


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("policies", nargs="*", metavar="POLICY")
    parser.add_argument("--candidates", type=int, default=128)
    parser.add_argument("--replications", type=int, default=2, help="of the search")
    parser.add_argument("--suite", default="laptop-2026.1")
    parser.add_argument("--jobs", type=int, default=1)
    parser.add_argument("--folder", default="alike")
    args = parser.parse_args()
    os.makedirs(args.folder, exist_ok=True)
    ledger = os.path.join(args.folder, "ledger.csv")
    shipped = [p["name"] for p in json.loads(output(XPUSIM, "list", "policy", "--json"))]
    rows = []
    for policy in args.policies or shipped:
        setting, tried = best(args, policy, ledger)
        if setting is None:
            rows.append((0, f"| {policy} | {tried} | none could be judged | | |"))
            continue
        public = judged(args, setting, ledger)
        sealed = judged(args, setting, ledger, "--sealed")
        shown = setting.partition(":")[2] or "as given"
        rows.append((sealed[0], f"| {policy} | {tried} | `{shown}` | " + " | ".join(
            f"{s:.3f} [{low:.3f}, {high:.3f}], {n}" for s, low, high, n in (public, sealed)) + " |"))
        print(rows[-1][1], file=sys.stderr, flush=True)
    print("| policy | settings tried | the best | public score, regressions | sealed score, regressions |\n|---|---:|---|---|---|")
    for _, row in sorted(rows, key=lambda r: -r[0]):
        print(row)
    return 0


if __name__ == "__main__":
    sys.exit(main())
