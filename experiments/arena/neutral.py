#!/usr/bin/env python3
"""A thousand policies that are no better than their reference go through a whole campaign: how many pass?

    experiments/arena/neutral.py [--variants 1000] [--suite FILE.json]

Nine of ten are `srpt:sigma=1,draw=K` against `srpt:sigma=1`: the same rule with another draw of its prediction errors, so
that all are equally good. The others are agent-xpu-v2 with parameters changed by too little to matter. Each is judged on
the public split with two runs at each point, and the ledger counts it. Then each is judged on the sealed split with all
runs, where the level is 5 % divided by the number of variants. At most one may pass (0.05 are due).
"""
import argparse
import json
import os
import random
import subprocess
import sys
import tempfile

XPUSIM = os.environ.get("XPUSIM", "build/xpusim")
BATCH = 50

POINTS = [
    {"point": "125h", "workload": "mixed:reactive_per_min=8,proactive_per_min=16,duration_s=60"},
    {"point": "8elite", "soc": "snapdragon-8elite", "llm": "qwen2.5-1.5b",
     "workload": "mixed:reactive_per_min=20,proactive_per_min=30,duration_s=60"},
]


def suite(folder, name, seed, more):
    path = os.path.join(folder, name + ".json")
    metrics = ["reactive.ttft_s.mean", "reactive.e2e_s.mean", "proactive.e2e_s.mean", "energy_active_j_per_token"]
    with open(path, "w", encoding="utf-8") as f:
        json.dump({"name": name, "suite": {"about": "neutral variants", "references": ["srpt:sigma=1"], **more},
                   "base": {"seed": seed}, "rows": POINTS, "replications": 10, "metrics": metrics}, f)
    return path


def nearly(rng):
    """agent-xpu-v2, where a kernel of a minute's age or a length of 256 tokens is a little more or less."""
    return (f"agent-xpu-v2:cache_ttl_s={rng.uniform(55, 65):.4g},length_bucket={rng.randint(250, 262)},"
            f"t_age_s={rng.uniform(850, 950):.4g},cache_entries={rng.randint(8, 9)}")


def judge(names, reference, ledger, path, *more):
    run = subprocess.run([XPUSIM, "arena", "judge", *names, "--suite", path, "--reference", reference, "--ledger", ledger,
                          "--json", "-q", *more], capture_output=True, text=True, check=True)
    d = json.loads(run.stdout)
    return d["judgements"] if len(names) > 1 else [d]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--variants", type=int, default=1000)
    parser.add_argument("--suite", help="a suite with a sealed split (default: two small points)")
    parser.add_argument("--jobs", default="2")
    args = parser.parse_args()
    rng = random.Random(1)
    near = []
    while len(near) < args.variants // 10:
        one = nearly(rng)
        near += [one] if one not in near else []
    kinds = {"srpt:sigma=1": [f"srpt:sigma=1,draw={k}" for k in range(1, args.variants - len(near) + 1)], "agent-xpu-v2": near}
    with tempfile.TemporaryDirectory() as folder:
        suite(folder, "sealed", 77, {})
        path = args.suite or suite(folder, "public", 76, {"sealed": "sealed.json"})
        ledger = os.path.join(folder, "ledger.csv")
        for more in (["--replications", "2"], ["--sealed"]):
            for reference, names in kinds.items():
                found = []
                for i in range(0, len(names), BATCH):
                    found += judge(names[i:i + BATCH], reference, ledger, path, "--jobs", args.jobs, *more)
                alone = sum(j["p_better"] <= 0.05 for j in found)
                equal = sum(j["score"] == 1 for j in found)
                lost = sum(bool(j["significant_regressions"]) for j in found)
                passed = sum(j["passes"] for j in found)
                print(f"{'sealed' if '--sealed' in more else 'public'}, against {reference}: {len(found)} variants, {equal} equal in "
                      f"every run; {alone} have p <= 0.05, {lost} a significant regression, {passed} pass", flush=True)
                if "--sealed" in more:
                    kinds[reference] = passed
        total = sum(kinds.values())
    print(f"{total} of {args.variants} neutral variants pass the final judgement; at most 1 may")
    return 0 if total <= 1 else 1


if __name__ == "__main__":
    sys.exit(main())
