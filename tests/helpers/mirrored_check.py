#!/usr/bin/env python3
"""What must be the other way round when two sides are exchanged, and what parts must add up to: comparisons and their
machines, the first decision that differs, windows and samples of a trace, rows by machine, stores that are merged."""
import csv
import io
import json
import pathlib
import subprocess
import sys

XPUSIM, FOLDER = sys.argv[1], pathlib.Path(sys.argv[2])
WORK = "--workload mixed:reactive_per_min=20,proactive_per_min=20,duration_s=40,output_scale=0.3 -q"
BAD = []


def said(command, statuses=(0, 1)):
    r = subprocess.run([XPUSIM, *command.split()], capture_output=True, text=True, stdin=subprocess.DEVNULL, timeout=300)
    if r.returncode not in statuses:
        sys.exit(f"FAILED: exit {r.returncode}: {command}\n{r.stderr[:400]}")
    return r.stdout


def same(what, a, b, within=1e-9):
    if a is None or b is None or isinstance(a, str):
        alike = a == b
    else:
        alike = abs(a - b) <= within * max(abs(a), abs(b)) + 1e-12
    if not alike:
        BAD.append(f"{what}: {a} and {b}")


def mirrored_comparison():
    """B against A is A against B: differences change their sign, intervals their ends, and ratios are inverted."""
    a, b = (json.loads(said(f"compare --policy edf --policy fcfs --baseline {base} {WORK} --replications 6 --uncertainty 32 --json"))
            for base in ("edf", "fcfs"))
    turned = {"lower": "higher", "higher": "lower"}
    n = 0
    for metric, x in a["policies"]["fcfs"].items():
        y, base = b["policies"]["edf"][metric], b["policies"]["fcfs"][metric]
        for key in ("mean", "low", "high"):
            same(f"compare {metric}.{key}", x[key], base[key])
        if x["diff"] is None:
            continue
        n += 1
        same(f"compare {metric}.diff", x["diff"], -y["diff"])
        same(f"compare {metric}.diff_low", x["diff_low"], None if y["diff_high"] is None else -y["diff_high"])
        same(f"compare {metric}.diff_high", x["diff_high"], None if y["diff_low"] is None else -y["diff_low"])
        same(f"compare {metric}.p", x["p"], y["p"], 1e-6)
        same(f"compare {metric}.p_holm", x.get("p_holm"), y.get("p_holm"), 1e-6)
        if x["ratio"] and y["ratio"]:
            same(f"compare {metric}.ratio", x["ratio"] * y["ratio"], 1.0, 1e-6)
        words = x["verdict"].split()[0]
        same(f"compare {metric}.verdict", turned.get(words, words), y["verdict"].split()[0])
    if n < 100:
        BAD.append(f"compare: only {n} metrics have a difference")
    for metric, best in a["uncertainty"]["best"].items():
        shares = [v["best_frac"] for v in best.values()]
        if abs(sum(shares) - 1) > 1e-9 or min(shares) < 0:
            BAD.append(f"uncertainty {metric}: best on {shares} of the machines")
        for policy, v in best.items():
            same(f"uncertainty {metric}.best of {policy}", v["best_frac"], b["uncertainty"]["best"][metric][policy]["best_frac"])
    for metric, pairs in a["uncertainty"]["pairs"].items():
        x, y = pairs["fcfs"], b["uncertainty"]["pairs"][metric]["edf"]
        same(f"uncertainty {metric}.difference", x["difference"], -y["difference"])
        same(f"uncertainty {metric}.model_low", x["model_low"], -y["model_high"], 1e-6)
        same(f"uncertainty {metric}.model_high", x["model_high"], -y["model_low"], 1e-6)
        same(f"uncertainty {metric}.sampling_low", x["sampling_low"], -y["sampling_high"], 1e-6)
        same(f"uncertainty {metric}.model_var_frac", x["model_var_frac"], y["model_var_frac"], 1e-6)
        if x["better_frac"] + y["better_frac"] > 1 + 1e-9:  # machines on which both are as good are of neither
            BAD.append(f"uncertainty {metric}: better on {x['better_frac']} and {y['better_frac']}")


def against_itself():
    """A policy does not differ from itself, under another name for the same parameters."""
    d = json.loads(said(f"compare --policy edf --policy edf:proactive_s=600 {WORK} --replications 3 --json"))
    other = next(v for k, v in d["policies"].items() if k != "edf")
    plain = d["policies"]["edf"]
    for metric, x in other.items():
        same(f"itself {metric}.mean", x["mean"], plain[metric]["mean"])
        if x["diff"] is not None:
            same(f"itself {metric}.diff", x["diff"], 0.0)


def sessions(text):
    """Sessions of a trace, each as its turns without what a window moves: ids and the first arrival."""
    found = {}
    for r in csv.DictReader(l for l in io.StringIO(text) if not l.startswith("#")):
        found.setdefault(r["session_id"], []).append(tuple(r[k] for k in ("turn", "class", "gap_s", "input_tokens", "output_tokens", "prefix_tokens")))
    return sorted(tuple(v) for v in found.values())


def parts_of_a_trace():
    """Windows that follow each other have each session once; all of it is a sample of 1."""
    rows = ["TIMESTAMP,ContextTokens,GeneratedTokens"] + [f"2023-11-16 18:{15 + k // 2}:{30 * (k % 2):02d}.5000000,{100 + 7 * k},{5 + k}" for k in range(40)]
    path = FOLDER / "log.csv"
    path.write_text("\n".join(rows) + "\n")
    base = f"trace import {path} --format azure"
    whole = sessions(said(base))
    parts = [s for span in ("--to 300", "--from 300 --to 601", "--from 601") for s in sessions(said(f"{base} {span}"))]
    if sorted(parts) != whole or len(whole) != 40:
        BAD.append(f"trace import: windows have {len(parts)} sessions, the whole has {len(whole)}")
    if sessions(said(f"{base} --sample 1")) != whole:
        BAD.append("trace import --sample 1: not all of it")
    half = sessions(said(f"{base} --sample 0.5 --seed 3"))
    if any(s not in whole for s in half) or not 8 <= len(half) <= 32:  # 20 +- 4 sd
        BAD.append(f"trace import --sample 0.5: {len(half)} of {len(whole)}")
    twice = [float(r["arrival_s"]) for r in csv.DictReader(l for l in io.StringIO(said(f"{base} --rate-scale 2")) if not l.startswith("#"))]
    for k, at in enumerate(twice):  # one each 30 s, twice as often
        same(f"trace import --rate-scale 2, row {k}", at, 15.0 * k, 1e-6)
    for cls in ("reactive", "proactive"):
        of = {r["class"] for r in csv.DictReader(l for l in io.StringIO(said(f"{base} --class {cls}")) if not l.startswith("#"))}
        if of != {cls}:
            BAD.append(f"trace import --class {cls}: {of}")


def rows_by_machine():
    """The rows of machines, one by one, are those of all."""
    machines = ("core-ultra-7-155h", "core-ultra-7-258v", "ryzen-ai-xdna2")
    lines = [l for l in pathlib.Path("hwmodels/points/reference.csv").read_text().splitlines(keepends=True)]
    head = [l for l in lines if l.startswith("#")] + [next(l for l in lines if not l.startswith("#"))]
    path = FOLDER / "points.csv"
    path.write_text("".join(head + [l for l in lines if l.split(",")[0] in machines]))

    def rows(more):
        """Every printed row without its number; the worst ones are printed twice."""
        return sorted({" ".join(l.split()[1:]) for l in said(f"validate --points {path} --rows {more}").split("\n") if l.split()[1:2] and l.split()[1] in machines})
    whole, parts = rows(""), sorted({r for m in machines for r in rows(f"--soc {m}")})
    if whole != parts or len(whole) < 200:
        BAD.append(f"validate --points: {len(parts)} rows by machine, {len(whole)} in all: {sorted(set(whole) ^ set(parts))[:3]}")


def merged_stores():
    """Shards in any order, and twice the same one, make the store of all."""
    spec = FOLDER / "spec.json"
    spec.write_text(json.dumps({"name": "t", "base": {"workload": "w1:n=4"}, "axes": {"policy": ["fcfs", "edf"], "seed": [1, 2, 3]}, "metrics": ["all.e2e_s.mean"]}))
    for k in range(3):
        said(f"sweep {spec} -o {FOLDER}/s{k}.db --shard {k}/3 -q")
    said(f"sweep {spec} -o {FOLDER}/all.db -q")
    said(f"merge -o {FOLDER}/m1.db {FOLDER}/s0.db {FOLDER}/s1.db {FOLDER}/s2.db")
    said(f"merge -o {FOLDER}/m2.db {FOLDER}/s2.db {FOLDER}/s1.db {FOLDER}/s0.db {FOLDER}/s1.db")
    for form in ("csv", "json"):
        whole = said(f"sweep -o {FOLDER}/all.db --export {form}")
        for name in ("m1", "m2"):
            if said(f"sweep -o {FOLDER}/{name}.db --export {form}") != whole:
                BAD.append(f"merge: {name} exports another {form} than one sweep of all")


def mirrored_decisions():
    """The first decision that differs is the same one from either side, and nobody differs from himself."""
    a = said(f"diff --policy edf --b-policy hpf {WORK} --json")
    b = said(f"diff --policy hpf --b-policy edf {WORK} --json")
    x, y = json.loads(a), json.loads(b)
    for key in x:
        if key.endswith("_a") or key == "a":
            other = key[:-1] + "b"
            if other in y and isinstance(x[key], (str, int, float)):
                same(f"diff {key}", x[key], y[other])
    same("diff of one policy with itself", subprocess.run([XPUSIM, *f"diff --policy edf --b-policy edf {WORK}".split()], capture_output=True).returncode, 0)


def ties():
    """Of requests that arrive at the same instant the first row is the first to be served, and turned round the last."""
    head = "request_id,session_id,turn,class,arrival_s,gap_s,input_tokens,output_tokens,prefix_tokens"
    rows = [f"{k},{k},0,reactive,1,,{20 + 7 * k},3,0" for k in range(12)]
    for order in (rows, rows[::-1]):
        path, out = FOLDER / "ties.csv", FOLDER / "ties-out.csv"
        path.write_text("\n".join(["# xpusim-trace v1", head, *order]) + "\n")
        said(f"run --policy fcfs --trace {path} --requests {out} -q")
        done = [r for r in csv.DictReader(l for l in out.read_text().splitlines() if not l.startswith("#"))]
        served = [r["request_id"] for r in sorted(done, key=lambda r: float(r["start_s"]))]
        same("requests of one instant, in order of service", ",".join(served), ",".join(r.split(",")[0] for r in order))


def main():
    for part in (ties, mirrored_comparison, against_itself, parts_of_a_trace, rows_by_machine, merged_stores, mirrored_decisions):
        if not sys.argv[3:] or part.__name__ in sys.argv[3:]:
            part()
    print("\n".join(f"FAILED: {b}" for b in BAD[:40]))
    return 1 if BAD else 0


if __name__ == "__main__":
    sys.exit(main())
