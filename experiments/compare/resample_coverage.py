#!/usr/bin/env python3
"""How often the interval of `compare --resample sessions` holds the true mean and the true difference.

    resample_coverage.py [RECORDINGS] [WORKLOAD]    with build/xpusim (BUILD names another folder)

Draws recordings of one generator, compares two policies on sessions redrawn from each, and counts the intervals that hold
what 400 generated traces say.
"""
import json
import os
import subprocess
import sys
import tempfile

X = os.path.join(os.environ.get("BUILD", "build"), "xpusim")
POLICIES = ["--policy", "edf", "--policy", "agent-xpu-v2"]
METRICS = ["reactive.ttft_s.mean", "reactive.e2e_s.p90", "proactive.e2e_s.mean", "energy_active_j_per_token"]


def compare(args):
    chosen = [w for m in METRICS for w in ("--metric", m)]
    run = subprocess.run([X, "compare", *POLICIES, *chosen, *args, "--json", "-q"], capture_output=True, text=True, check=True)
    return json.loads(run.stdout)["policies"]


def main(n=100, workload="mixed:duration_s=900"):
    truth = compare(["--workload", workload, "--replications", "400", "--seed", "900001"])
    held = {}
    with tempfile.TemporaryDirectory() as folder:
        for seed in range(1, int(n) + 1):
            path = os.path.join(folder, "r.csv")
            subprocess.run([X, "trace", "gen", "--workload", workload, "--seed", str(seed), "-o", path], check=True,
                           capture_output=True)
            got = compare(["--trace", path, "--resample", "sessions", "--replications", "20"])
            for policy in got:
                for metric in METRICS:
                    one, true = got[policy][metric], truth[policy][metric]
                    for what, low, high in (("mean", "low", "high"), ("diff", "diff_low", "diff_high")):
                        if one.get(low) is not None and true.get(what) is not None:
                            held.setdefault((what, policy, metric), []).append(one[low] <= true[what] <= one[high])
    print(f"{n} recordings of {workload}: share of 95 % intervals that hold the truth")
    for key in sorted(held):
        print(f"  {key[0]:5s} {key[1]:14s} {key[2]:28s} {sum(held[key]) / len(held[key]):.2f}")


if __name__ == "__main__":
    main(*sys.argv[1:])
