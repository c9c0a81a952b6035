#!/usr/bin/env python3
"""What `falsify` prints is worked out again: the result on the seeds that are named, the request that lost most, its causes, the commands
to repeat it, and every line of the text."""
import json
import math
import pathlib
import re
import subprocess
import sys

XPUSIM, FOLDER = sys.argv[1], pathlib.Path(sys.argv[2])
BAD, CHECKED = [], 0
LOAD = "mixed:reactive_per_min=9,proactive_per_min=12,duration_s=90,output_scale=0.3"
POLICY, BASELINE, METRIC = "fcfs", "agent-xpu-v2", "all.e2e_s.mean"
ASKED = ["falsify", "--policy", POLICY, "--baseline", BASELINE, "--workload", LOAD, "--budget", "8", "--replications", "2", "--confirm", "5", "--metric", METRIC]


def said(*words, status=(0,)):
    r = subprocess.run([XPUSIM, *map(str, words)], capture_output=True, text=True, stdin=subprocess.DEVNULL, timeout=300)
    if r.returncode not in status:
        sys.exit(f"FAILED: exit {r.returncode}: {' '.join(map(str, words))}\n{r.stderr[:300]}")
    return r.stdout


def same(what, got, want, within=1e-9):
    global CHECKED
    CHECKED += 1
    if got != want and not (isinstance(got, (int, float)) and isinstance(want, (int, float)) and abs(got - want) <= within * max(abs(want), 1e-9)):
        BAD.append(f"{what}: {str(got)[:300]}, worked out {str(want)[:300]}")


def times(x):
    return f"{x['ratio']:.3g} times [{x['low']:.3g}, {x['high']:.3g}], n={x['n']}"


def mixed(x):
    """A step of splitmix64."""
    x = (x + 0x9E3779B97F4A7C15) % 2**64
    x = (x ^ x >> 30) * 0xBF58476D1CE4E5B9 % 2**64
    x = (x ^ x >> 27) * 0x94D049BB133111EB % 2**64
    return x ^ x >> 31


def explains_a_loss():
    """The first replication of the smallest change has no reactive request, so another one lost most."""
    few = ["--workload", "mixed:reactive_per_min=2,proactive_per_min=8,duration_s=60", "--over", "machine", "--budget", "8", "--replications", "1", "--confirm", "5"]
    metric = "reactive.e2e_s.mean"
    d = json.loads(said("falsify", "--policy", POLICY, "--baseline", BASELINE, "--metric", metric, *few, "--seed", "47", "--json", "-q", status=(0, 1)))["searches"][0]
    command = d["compare_command"].split()
    scenario = command[command.index("--soc"):]
    seeds = [mixed((mixed(47) + 0x9E3779B97F4A7C15 * (300000 + i)) % 2**64) >> 11 for i in range(5)]
    runs = [[json.loads(said("run", "--policy", p, "--seed", s, *scenario, "--json", "-q"))["metrics"][metric] for p in (POLICY, BASELINE)] for s in seeds]
    same("a replication without the metric", runs[0], [None, None])
    losses = {s: math.log(a / b) for s, (a, b) in zip(seeds, runs) if a is not None}
    same("mean loss", d["least"]["ratio"], math.exp(sum(losses.values()) / len(losses)), 1e-9)
    same("seed that lost most", d.get("reason", {}).get("seed"), max(losses, key=losses.get))


def main():
    explains_a_loss()
    whole = json.loads(said(*ASKED, "--json", "-q", status=(0, 1)))
    d = whole["searches"][0]
    text = said(*ASKED, "-q", status=(0, 1)).split("\n")
    if not d["found"]:
        sys.exit("FAILED: nothing was found, so nothing is tested")
    same("policies", (d["policy"], d["baseline"], d["metric"], d["worlds"]), (POLICY, BASELINE, METRIC, 8))
    # The seed is that of the replication that lost most on the smallest change, and its request the one that took longest.
    seed, command = d["reason"]["seed"], d["compare_command"].split()
    scenario = command[command.index("--soc"):]
    same("command", d["compare_command"], f"xpusim compare --policy {POLICY} --policy {BASELINE} --baseline {BASELINE} --metric {METRIC} --seed {seed} {' '.join(scenario)}")
    lives, metrics = [], []
    for p in (POLICY, BASELINE):
        file = FOLDER / f"{p}.csv"
        metrics.append(json.loads(said("run", "--policy", p, "--seed", seed, *scenario, "--requests", file, "--json", "-q"))["metrics"][METRIC])
        lines = [l.split(",") for l in file.read_text().split("\n") if l and not l.startswith("#")]
        lives.append({r[0]: dict(zip(lines[0], r)) for r in lines[1:]})
    if metrics[0] / metrics[1] < d["least"]["ratio"] - 1e-9:
        BAD.append(f"seed {seed} loses {metrics[0] / metrics[1]} times, and the mean is {d['least']['ratio']}")
    longer = {i: float(r["e2e_s"]) - float(lives[1][i]["e2e_s"]) for i, r in lives[0].items()}
    worst = max(longer, key=longer.get)
    r = d["reason"]
    a, b = (json.loads(said("explain", "--policy", p, "--request", worst, "--seed", seed, *scenario, "--json")) for p in (POLICY, BASELINE))
    same("reason", (r["request_id"], r["input_tokens"], r["output_tokens"]), (int(worst), int(lives[0][worst]["input_tokens"]), int(lives[0][worst]["output_tokens"])))
    same("reason: latencies", r["latency_s"], a["latency_ns"] / 1e9)
    same("reason: latencies of the baseline", r["baseline_latency_s"], b["latency_ns"] / 1e9)
    causes = {k: (a["causes_ns"][k] / 1e9, b["causes_ns"][k] / 1e9) for k in a["causes_ns"] if a["causes_ns"][k] or b["causes_ns"][k]}
    same("causes", {k: (v["policy_s"], v["baseline_s"]) for k, v in d["causes"].items()}, causes)
    # What is needed is between what was given and the worst, and the command has it.
    spec = scenario[scenario.index("--workload") + 1]
    keys = dict(k.split("=") for k in spec.split(":")[1].split(","))
    given = dict(k.split("=") for k in LOAD.split(":")[1].split(","))
    for name, x in d["axes"].items():
        for v in (x["nominal"], x["worst"], x["least"]):
            if v is not None and not x["low"] - 1e-12 <= v <= x["high"] + 1e-12:
                BAD.append(f"axis {name}: {x}")
        if x["least"] is not None and name in ("reactive_per_min", "proactive_per_min", "burst", "sessions") or name.endswith("_scale") and x["least"] is not None:
            same(f"axis {name}: in the command", float(keys.get(name, "nan")), x["least"])
        elif name in given:
            same(f"axis {name}: as given", float(keys[name]), float(given[name]))
    # The text, line by line.
    want = [f"core-ultra-5-125h, llama-3.2-3b, {LOAD}; seed 1",
            f"{METRIC} of {POLICY} against {BASELINE}: {d['worlds']} scenarios x 2 seeds searched ({d['worlds_out']} out), {d['runs']} runs in all"]
    for p in (POLICY, BASELINE):
        if d["failures"][p]["n"]:
            want.append(f"{p} failed in {d['failures'][p]['n']} runs in which the other did not: {d['failures'][p]['message']}")
    want += [f"as given: {times(d['given'])} the baseline's", f"worst scenario of the search: {d['worst_searched_ratio']:.3g} times the baseline's; on fresh seeds {times(d['worst'])}",
             f"the smallest change that keeps half of it in logarithms: {times(d['least'])} the baseline's", "scenarios", "varied from to as given worst found needed"]
    want += [" ".join([n] + [f"{x[k]:g}" for k in ("low", "high", "nominal", "worst")] + ([f"{x['least']:g}"] if x["least"] is not None else [])) for n, x in d["axes"].items()]
    want += [f"why: request {worst} of seed {seed}",
             f"{lives[0][worst]['class']}, {r['input_tokens']} prompt and {r['output_tokens']} output tokens: {r['latency_s']:.3f} s under {POLICY}, {r['baseline_latency_s']:.3f} s under {BASELINE}",
             "cause policy s baseline s"]
    want += [f"{k} {v[0]:.3f} {v[1]:.3f}" for k, v in causes.items()]
    want += [f"in the way: request {x['request_id']} ({lives[0][str(x['request_id'])]['class']}), {(x['tail_ns'] + x['queue_ns'] + x['shared_ns']) / 1e9:.3f} s" for x in a["blockers"][:3]]
    want += ["again", d["compare_command"]] + [f"xpusim explain --request {worst} --policy {p} --seed {seed} {' '.join(scenario)}" for p in (POLICY, BASELINE)]
    got = [" ".join(l.split()) for l in text if l.strip() and not l.startswith("warning")]
    for i, w in enumerate(want):
        if i >= len(got) or not (got[i] == w or got[i].startswith(w + " ") and i > 5):
            BAD.append(f"line {i}: {got[i] if i < len(got) else None!r}, worked out {w!r}")
            break
    same("lines", len(got), len(want))
    print("\n".join(f"FAILED: {b}" for b in BAD[:20]))
    print(f"{CHECKED} numbers and {len(want)} lines worked out again")
    return 1 if BAD or CHECKED < 8 else 0


sys.exit(main())
