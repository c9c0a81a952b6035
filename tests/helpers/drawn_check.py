#!/usr/bin/env python3
"""The data of figures is worked out again from what they are drawn from: requests, comparisons, kernels, explanations and the
requests that lived at an instant. `plot` leaves the data next to the picture."""
import collections
import csv
import json
import pathlib
import statistics
import subprocess
import sys

XPUSIM, FOLDER = sys.argv[1], pathlib.Path(sys.argv[2])
BAD = []
CHECKED = collections.Counter()
LOAD = "--workload mixed:reactive_per_min=20,proactive_per_min=20,duration_s=40,output_scale=0.3 --seed 3 -q"
TO_S = 40


def said(command, file=None):
    r = subprocess.run([XPUSIM, *command.split()], capture_output=True, text=True, stdin=subprocess.DEVNULL, timeout=300)
    if r.returncode != 0:
        sys.exit(f"FAILED: exit {r.returncode}: {command}\n{r.stderr[:300]}")
    if file is not None:
        (FOLDER / file).write_text(r.stdout)
    return r.stdout


def blocks(name, file):
    """A figure's data: name of a block -> its rows, numbers where they are."""
    said(f"plot {name} -o {FOLDER} --format svg --to {TO_S} {FOLDER / file}")
    found, rows = [], None
    for line in (FOLDER / f"{name}.tsv").read_text().split("\n"):
        if not line.strip():
            rows = None
        elif rows is None:
            rows = []
            found.append((line, rows))
        else:
            rows.append([number(c) for c in line.split("\t")])
    return found


def number(text):
    try:
        return float(text)
    except ValueError:
        return text


def same(what, got, want, within=1e-6):
    CHECKED[what.split()[0]] += 1
    alike = got == want if isinstance(want, str) or isinstance(got, str) else abs(got - want) <= within * max(abs(want), 1e-9)
    if not alike:
        BAD.append(f"{what}: {got}, worked out {want}")


def rows_of(path):
    return [r for r in csv.DictReader(l for l in path.read_text().splitlines() if not l.startswith("#"))]


def requests():
    rows = rows_of(FOLDER / "r.csv")
    of = {c: [r for r in rows if r["class"] == c and r["state"] == "finished"] for c in ("reactive", "proactive")}
    first = {c: sorted(float(r["first_token_s"]) - float(r["arrival_s"]) for r in v) for c, v in of.items()}
    whole = {c: sorted(float(r["finish_s"]) - float(r["arrival_s"]) for r in v) for c, v in of.items()}
    each = {c: sorted((float(r["finish_s"]) - float(r["first_token_s"])) / (int(r["output_tokens"]) - 1) for r in v if int(r["output_tokens"]) > 1) for c, v in of.items()}
    tokens = {k: {c: sorted(float(r[k]) for r in v) for c, v in of.items()} for k in ("input_tokens", "output_tokens")}
    for name, wanted in (("cdf", (first, each, whole)), ("lengths", (tokens["input_tokens"], tokens["output_tokens"]))):
        drawn = [(b, rows) for b, rows in blocks(name, "r.csv") if b in of]
        same(f"{name} blocks", len(drawn) % 2, 0)
        for k, (cls, points) in enumerate(drawn):
            n, values = len(points), [p[0] for p in points]
            match = next((w[cls] for w in wanted if len(w[cls]) == n and all(abs(a - b) <= 1e-6 * max(abs(b), 1) for a, b in zip(values, w[cls]))), None)
            if match is None:
                BAD.append(f"{name} {cls}, block {k}: {values[:4]} are neither {[w[cls][:4] for w in wanted]}")
            for i, p in enumerate(points):
                same(f"{name} {cls} {i}", p[1], (i + 1) / n)
    lived = collections.defaultdict(list)
    for r in rows:
        lived[r["class"]].append((float(r["arrival_s"]), float(r["finish_s"]) if r["state"] == "finished" else float("inf")))
    for cls, points in blocks("queue", "t.json"):
        if cls in lived:
            for t, n in points:
                # where nobody comes or goes within a bin, so that an instant and a mean are one number
                if all(abs(x - t) > 0.11 for a, b in lived[cls] for x in (a, b)):
                    same(f"queue {cls} at {t}", n, sum(a <= t < b for a, b in lived[cls]))


def comparisons():
    load = json.loads((FOLDER / "load.json").read_text())
    rates = load["loads"] if "loads" in load else load["load"]
    means = {}
    for r in rates:
        for policy, m in r["policies"].items():
            means.setdefault(policy, []).append((r, m))
    metrics = ("reactive.e2e_s.mean", "reactive.e2e_s.p90", "proactive.e2e_s.mean", "proactive.e2e_s.p90", "reactive.ttft_s.mean", "reactive.ttft_s.p90")
    for policy, points in blocks("latency-rate", "load.json"):
        for k, p in enumerate(points if policy in means else []):
            m = means[policy][k][1]
            name = next((n for n in metrics if n in m and abs(m[n]["mean"] - p[1]) < 1e-6 * abs(p[1])), None)
            if name is None:
                BAD.append(f"latency-rate {policy} {k}: {p[1]} is the mean of no metric")
                continue
            same(f"latency-rate {policy} {k} low", p[2], m[name]["low"])
            same(f"latency-rate {policy} {k} high", p[3], m[name]["high"])
            same(f"latency-rate {policy} {k} runs", p[4], load["replications"])
    for policy, points in blocks("pareto", "load.json"):
        for k, p in enumerate(points if policy in means else []):
            for key, at in (("proactive.throughput_req_per_min", (0, 2, 3)), ("reactive.e2e_s.mean", (1, 4, 5))):
                m = means[policy][k][1][key]
                for i, end in zip(at, ("mean", "low", "high")):
                    same(f"pareto {policy} {k} {key} {end}", p[i], m[end])
    policies = json.loads((FOLDER / "cmp.json").read_text())["policies"]
    for title, rows in blocks("headline", "cmp.json"):
        key = {"mean reactive time to first token (s)": "reactive.ttft_s.mean", "mean reactive latency (s)": "reactive.e2e_s.mean"}.get(title)
        for row in rows if key else []:
            for i, end in enumerate(("mean", "low", "high")):
                same(f"headline {row[0]} {key} {end}", row[1 + i], policies[row[0]][key][end])


def prices():
    kernels = json.loads((FOLDER / "k.json").read_text())["kernels"]
    of = collections.defaultdict(list)
    for k in kernels:
        of[k["device"]].append(k)
    for device, rows in blocks("kernels", "k.json"):
        for k, row in zip(of[device], rows):
            same(f"kernels {device} name", row[0], f"{k['op']}, {k['work']}")
            same(f"kernels {device} {row[0]} ms", row[2], 1e3 * k["time_s"])
            same(f"kernels {device} {row[0]} J", row[5], k["watts"] * k["time_s"])
    explained = json.loads((FOLDER / "i.json").read_text())["interference"]
    classes = ("reactive", "proactive")
    for _, rows in blocks("interference", "i.json"):
        for row in rows:
            victim, by = row[4], row[3]
            if victim in classes and by in classes:
                wait, shared = (explained[victim]["by"][by][k] / explained[victim]["requests"] for k in ("wait_s", "shared_s"))
                if not any(abs(row[2] - x) <= 1e-6 * abs(x) for x in (wait, wait + shared, shared)):
                    BAD.append(f"interference {victim} behind {by}: {row[2]}, worked out {wait} and {shared}")
                CHECKED["interference"] += 1
    for cls, rows in blocks("causes", "i.json"):
        for row in rows if cls in classes else []:
            numbers = [v for v in row[1:] if isinstance(v, float) and v == v]
            mean = explained[cls]["latency_s"] / explained[cls]["requests"]
            same(f"causes {cls}: their sum", max(v for v in numbers if v <= mean * (1 + 1e-6)), mean)
            seen = [b - a for a, b in zip(numbers, numbers[1:]) if b - a > 1e-9]
            want = [v / explained[cls]["requests"] for v in explained[cls]["causes_s"].values() if v > 0]
            drawn = [v for v in want if any(abs(v - s) <= 1e-6 * v for s in seen)]  # parts that are alike are drawn as one
            same(f"causes {cls}: half of them have a part of their own", len(drawn) >= len(want) / 2, True)


def main():
    said(f"run --policy agent-xpu-v2 {LOAD} --requests {FOLDER / 'r.csv'} --timeline {FOLDER / 't.json'}")
    said(f"compare --policy fcfs --policy agent-xpu-v2 --replications 3 {LOAD} --json", "cmp.json")
    said(f"compare --policy fcfs --policy agent-xpu-v2 --replications 3 --load 0.4,0.8 {LOAD} --json", "load.json")
    said("list kernels --json", "k.json")
    said(f"explain --interference --policy agent-xpu-v2 {LOAD} --json", "i.json")
    for part in (requests, comparisons, prices):
        part()
    print("\n".join(f"FAILED: {b}" for b in BAD[:40]))
    print(f"{sum(CHECKED.values())} numbers of figures worked out again: {dict(CHECKED)}")
    names = ("cdf", "lengths", "queue", "latency-rate", "pareto", "headline", "kernels", "interference", "causes")
    return 1 if BAD or any(CHECKED[n] == 0 for n in names) else 0


if __name__ == "__main__":
    sys.exit(main())
