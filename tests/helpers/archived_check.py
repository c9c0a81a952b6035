#!/usr/bin/env python3
"""The archive of a suite, its certificate and the words of a judgement are worked out again from single runs, the best schedules in
hindsight, explanations and the decisions of two runs."""
import collections
import concurrent.futures
import json
import math
import os
import pathlib
import re
import subprocess
import sys

from printed import student_interval

XPUSIM, FOLDER = sys.argv[1], pathlib.Path(sys.argv[2])
BAD, CHECKED = [], collections.Counter()
RUNS = 2
METRICS = {"reactive.e2e_s.mean": False, "all.ttft_s.p90": False, "all.throughput_req_per_min": True}  # is more better?
POINTS = {"a": ("core-ultra-5-125h", "mixed:reactive_per_min=20,proactive_per_min=20,duration_s=14,output_scale=0.3", True),
          "b": ("core-ultra-7-258v", "mixed:reactive_per_min=9,proactive_per_min=30,duration_s=14,output_scale=0.3", True),
          "c": ("core-ultra-7-258v", "mixed:reactive_per_min=30,proactive_per_min=6,duration_s=14,output_scale=0.3", False)}
REFERENCES = ["fcfs", "srpt", "edf"]
SHOWN = ["agent-xpu-v2", "srpt", "npu-serial", "edf"]


def said(*words, status=(0,)):
    r = subprocess.run([XPUSIM, *map(str, words)], capture_output=True, text=True, stdin=subprocess.DEVNULL, timeout=300)
    if r.returncode not in status:
        sys.exit(f"FAILED: exit {r.returncode}: {' '.join(map(str, words))}\n{r.stderr[:300]}")
    return r.stdout


def same(what, got, want, within=1e-9):
    CHECKED[what.split()[0]] += 1
    if want is None or got is None or isinstance(want, str):
        ok = got == want
    else:
        ok = abs(got - want) <= within * max(abs(want), 1e-9)
    if not ok:
        BAD.append(f"{what}: {str(got)[:200]}, worked out {str(want)[:200]}")


def at(tree, metric):
    for k in metric.split("."):
        tree = tree[k]
    return tree


def mean(v):
    v = [x for x in v if x is not None and not math.isnan(x)]
    return sum(v) / len(v) if v else None


def options(point, seed):
    soc, workload, _ = POINTS[point]
    return "--soc", soc, "--workload", workload, "--seed", seed


def causes(x):
    order = sorted((k for k, v in x["causes_ns"].items() if v > 0), key=lambda k: -x["causes_ns"][k])[:3]
    return ", ".join(f"{x['causes_ns'][k] / 1e9:.2f} s {k}" for k in order)


def words(policy, value, seeds):
    """What is said of the pair in which most was lost, scored or not, in the replication that lost most."""
    tree = json.loads(said("arena", "judge", policy, "--suite", FOLDER / "small.json", "--words", "--json", "-q"))
    judged = tree["judgements"][0] if "judgements" in tree else tree
    text = judged["artefacts"]
    gain = {}
    for p in POINTS:
        for m, more in METRICS.items():
            gain[p, m] = mean([math.log(value[policy, p, m, k] / value["fcfs", p, m, k]) * (1 if more else -1) for k in range(RUNS)])
    p, m = min(gain, key=gain.get)
    sign = 1 if METRICS[m] else -1
    k = min(range(RUNS), key=lambda i: sign * math.log(value[policy, p, m, i] / value["fcfs", p, m, i]))
    cls = m.split(".")[0]
    lives = []
    for who in (policy, "fcfs"):
        file = FOLDER / f"{who}.csv"
        said("run", "--policy", who, *options(p, seeds[p][k]), "--requests", file, "-q")
        lines = [l.split(",") for l in file.read_text().split("\n") if l and not l.startswith("#")]
        lives.append({r[0]: dict(zip(lines[0], r)) for r in lines[1:]})
    longer = {i: float(r["e2e_s"]) - float(lives[1][i]["e2e_s"]) for i, r in lives[0].items() if cls in ("all", r["class"])}
    worst = max(longer, key=longer.get)
    if longer[worst] <= 0:
        same(f"words {policy}: no request lost", text["worst_request"], None)
    else:
        a, b = (json.loads(said("explain", "--policy", who, "--request", worst, *options(p, seeds[p][k]), "--json")) for who in (policy, "fcfs"))
        r = lives[0][worst]
        want = f"{p}, seed {seeds[p][k]}: request {worst} ({r['class']}, {r['input_tokens']} prompt and {r['output_tokens']} output tokens) took {a['latency_ns'] / 1e9:.2f} s under {policy}: {causes(a)}"
        want += f"; {b['latency_ns'] / 1e9:.2f} s under fcfs: {causes(b)}"
        blockers = a["blockers"][:3]
        if blockers:
            want += "; in its way: " + ", ".join(f"{x['request_id']} ({lives[0][str(x['request_id'])]['class']}, {(x['tail_ns'] + x['queue_ns'] + x['shared_ns']) / 1e9:.2f} s)" for x in blockers)
        same(f"words {policy}: the request", text["worst_request"], want)
    d = json.loads(said("diff", "--policy", policy, "--b-policy", "fcfs", *options(p, seeds[p][k]), "--json", status=(0, 1)))
    same(f"words {policy}: the decision", text["first_difference"], f"{p}, seed {seeds[p][k]}, decision {d['decision']}: {policy}: {d['a']}; fcfs: {d['b']}")
    same(f"words {policy}: failure, refusals, scenario", str((text["failure"], text["refused"], text["worst_scenario"])), "(None, None, None)")
    return judged


def main():
    rows = [{"point": p, "soc": soc, "workload": w} for p, (soc, w, _) in POINTS.items()]
    (FOLDER / "small.json").write_text(json.dumps({
        "name": "small", "suite": {"about": "a test", "references": REFERENCES, "unscored": [p for p, x in POINTS.items() if not x[2]]}, "rows": rows,
        "replications": RUNS, "metrics": list(METRICS)}))
    compared = {p: json.loads(said("compare", "--policy", "fcfs", "--policy", "srpt", "--policy", "edf", "--regret", "--soc", soc, "--workload", w, "--replications", RUNS, "--json", "-q"))
                for p, (soc, w, _) in POINTS.items()}
    seeds = {p: [int(s) for s in c["seeds"]] for p, c in compared.items()}
    policies = sorted(set(SHOWN + REFERENCES))
    tasks = [(q, p, k) for q in policies for p in POINTS for k in range(RUNS)]
    with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        results = list(pool.map(lambda t: json.loads(said("run", "--policy", t[0], *options(t[1], seeds[t[1]][t[2]]), "--json", "-q")), tasks))
    value = {(q, p, m, k): r["metrics"][m] for (q, p, k), r in zip(tasks, results) for m in METRICS}
    archive = json.loads(said("arena", "archive", *(w for q in SHOWN for w in ("--policy", q)), "--suite", FOLDER / "small.json", "--json", "-q"))
    best = {}
    for p in POINTS:
        for m, more in METRICS.items():
            row = archive["certificate"][p][m]
            choose = max if more else min
            hindsight, bound = (at(compared[p]["regret"][k], "") if False else compared[p]["regret"][k].get(m) for k in ("clairvoyant", "oracle_lb"))
            means = {q: mean([value[q, p, m, k] for k in range(RUNS)]) for q in REFERENCES}
            same(f"certificate {p} {m}: reference", row["reference"], means["fcfs"])
            same(f"certificate {p} {m}: best reference", row["best_by"], choose(REFERENCES, key=means.get))
            same(f"certificate {p} {m}: hindsight", row["hindsight"], hindsight and hindsight["mean"])
            same(f"certificate {p} {m}: bound", row["bound"], bound and bound["mean"])
            if hindsight is None:  # where no schedule was sought, the best of the references in each run
                best[p, m] = mean([choose(value[q, p, m, k] for q in REFERENCES) for k in range(RUNS)])
                same(f"certificate {p} {m}: best known", row["best"], best[p, m])
            else:
                best[p, m] = row["best"]
                limit = choose(hindsight["mean"], *means.values())
                if (row["best"] < limit - 1e-9) if more else (row["best"] > limit + 1e-9):
                    BAD.append(f"certificate {p} {m}: {row['best']} is no better than {limit}")
            same(f"certificate {p} {m}: headroom", row["headroom"], best[p, m] / means["fcfs"] if more else means["fcfs"] / best[p, m])
    board = archive["leaderboard"]
    scores = {}
    for q in SHOWN:
        gains = {(p, m): [math.log(value[q, p, m, k] / value["fcfs", p, m, k]) * (1 if more else -1) for k in range(RUNS)] for p in POINTS for m, more in METRICS.items()}
        scored = [g for (p, m), g in gains.items() if POINTS[p][2]]
        clipped = [mean([max(-math.log(2), min(math.log(2), g[k])) for g in scored]) for k in range(RUNS)]
        scores[q] = mean(clipped)
        _, low, high = student_interval(clipped)
        for column, want in (("score", mean(clipped)), ("low", low), ("high", high)):
            same(f"leaderboard {q}: {column}", board[q][column], math.exp(want), 1e-8)
        for m, more in METRICS.items():
            same(f"leaderboard {q}: {m}", at(board[q], m), math.exp(mean([mean(gains[p, m]) for p in POINTS if POINTS[p][2]])), 1e-8)
        room = [math.log((best[p, m] / mean([value[q, p, m, k] for k in range(RUNS)])) ** (1 if more else -1)) for p in POINTS if POINTS[p][2] for m, more in METRICS.items()]
        same(f"leaderboard {q}: headroom", board[q]["headroom"], math.exp(mean(room)), 1e-8)
        same(f"leaderboard {q}: failed", board[q]["failed"], 0)
    same("leaderboard order", str(list(board)), str(sorted(SHOWN, key=lambda q: -scores[q])))
    for q in ("edf", "npu-serial"):  # the second one loses most at the point that is not scored
        judged = words(q, value, seeds)
        same(f"leaderboard {q}: score by judge", judged["score"], board[q]["score"])
        same(f"leaderboard {q}: regressions by judge", len(judged["significant_regressions"]), board[q]["regressions"])
        for p in POINTS:
            for m in METRICS:
                same(f"cells {q} {p} {m}: value", judged["cells"][p][m]["value"], mean([value[q, p, m, k] for k in range(RUNS)]))
                same(f"cells {q} {p} {m}: reference", judged["cells"][p][m]["reference"], mean([value["fcfs", p, m, k] for k in range(RUNS)]))
    print("\n".join(f"FAILED: {b}" for b in BAD[:30]))
    print("worked out again: " + ", ".join(f"{n} of {k}" for k, n in CHECKED.items()))
    return 1 if BAD or sum(CHECKED.values()) < 120 else 0


sys.exit(main())
