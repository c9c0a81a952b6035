#!/usr/bin/env python3
"""Every column of a run in a store is that of the run by itself: what it is of, its hashes, metrics and counters."""
import json
import pathlib
import re
import sqlite3
import subprocess
import sys

XPUSIM, FOLDER = sys.argv[1], pathlib.Path(sys.argv[2])
BAD, CHECKED = [], 0
LOAD = "mixed:reactive_per_min=20,proactive_per_min=20,duration_s=20,output_scale=0.3"


def said(*words):
    r = subprocess.run([XPUSIM, *map(str, words)], capture_output=True, text=True, stdin=subprocess.DEVNULL, timeout=300)
    if r.returncode != 0:
        sys.exit(f"FAILED: exit {r.returncode}: {' '.join(map(str, words))}\n{r.stderr[:300]}")
    return r.stdout


def same(what, got, want):
    global CHECKED
    CHECKED += 1
    close = isinstance(got, float) and isinstance(want, (int, float)) and abs(got - want) <= 1e-14 * abs(want)  # JSON ends a digit before
    if got != want and not close:
        BAD.append(f"{what}: {got!r}, worked out {want!r}")


def main():
    store = FOLDER / "s.db"
    asked = [("compare", "--policy", "edf:max_batch=4", "--policy", "agent-xpu-v2", "--workload", LOAD, "--replications", 2),
             ("compare", "--policy", "fcfs", "--policy", "srpt", "--workload", LOAD, "--replications", 2, "--soc", "core-ultra-7-258v", "--llm", "llama-3.2-1b:bits=4", "--seed", 5),
             ("compare", "--policy", "fcfs", "--policy", "edf", "--workload", LOAD, "--replications", 2, "--load", "0.4,0.8")]
    plain = [said(*a, "-q", "--json") for a in asked]
    drop = lambda text: re.sub(r'"(command|version)":.*', "", text)
    for times in range(2):  # made, then found there
        for a, text in zip(asked, plain):
            same(f"{a[2]} with a store", drop(said(*a, "-q", "--json", "--store", store)), drop(text))
    db = sqlite3.connect(store)
    db.row_factory = sqlite3.Row
    rows = db.execute("select * from runs join metrics on metrics.run_id = runs.id").fetchall()
    loads = {round(r["rate_scale"], 9) for r in rows} - {1.0}
    told = json.loads(plain[2])["loads"]
    same("rates", len(loads), 2)
    same("rates of the loads", sorted(loads), sorted(round(t["rate_scale"], 9) for t in told) if all("rate_scale" in t for t in told) else sorted(loads))
    seeds = [[int(s) for s in json.loads(t)["seeds"]] for t in plain[:2]]
    policies = {("core-ultra-5-125h", "edf", 4), ("core-ultra-5-125h", "agent-xpu-v2", 32), ("core-ultra-7-258v", "fcfs", None), ("core-ultra-7-258v", "srpt", None)}
    of_plain = [r for r in rows if r["rate_scale"] == 1.0 and not (r["soc"] == "core-ultra-5-125h" and r["policy"] == "fcfs")]
    seen = {(r["soc"], r["policy"], int(m.group(1)) if r["policy"] in ("edf", "agent-xpu-v2") and (m := re.search(r"max_batch=(\d+)", r["params"])) else None) for r in of_plain}
    if not policies <= seen:
        BAD.append(f"policies: {seen}, without {policies - seen}")
    for r in of_plain:
        words = ["run", "--policy", f"{r['policy']}:{r['params']}" if r["params"] else r["policy"], "--soc", r["soc"], "--workload", r["workload"], "--seed", r["seed"], "--json", "-q"]
        words += ["--llm", "llama-3.2-1b:bits=4" if r["soc"] == "core-ultra-7-258v" else "llama-3.2-3b"]
        one = json.loads(said(*words))
        name = f"{r['policy']} on {r['soc']}, seed {r['seed']}"
        same(f"{name}: fingerprint", r["fingerprint"].split(" config=")[1], one["fingerprint"].split(" config=")[1])
        same(f"{name}: hashes", (r["config_hash"], r["trace_hash"]), tuple(re.findall(r"(?:config|trace)=(\w+)", one["fingerprint"])))
        same(f"{name}: verdict, workload", (r["verdict"], r["workload"]), (one["verdict"], LOAD))
        same(f"{name}: seed", r["seed"] in seeds[r["soc"] == "core-ultra-7-258v"], True)
        tree = json.loads(db.execute("select tree from configurations where hash = ?", (r["config_hash"],)).fetchone()[0])
        same(f"{name}: configuration", (tree["soc"]["name"], tree["llm"]["name"]), (one["config"]["soc"]["name"], one["config"]["llm"]["name"]))
        same(f"{name}: model", r["llm"].split(":")[0].split(",")[0] in one["config"]["llm"]["name"] or one["config"]["llm"]["name"] in r["llm"], True)
        for k, v in one["metrics"].items():
            if k in r.keys():
                same(f"{name}: {k}", r[k], v)
        for k, v in one["counters"].items():
            if f"counters.{k}" in r.keys():
                same(f"{name}: counters.{k}", r[f"counters.{k}"], v)
    # Schedules in hindsight that are too many to be tried all: each is kept under what it was told, and found again.
    hindsight = ("compare", "--policy", "fcfs", "--policy", "edf", "--workload", LOAD.replace("duration_s=20", "duration_s=28"), "--replications", 1, "--regret", "--json", "-q")
    once = json.loads(said(*hindsight))["regret"]
    for times in range(2):
        same("regret with a store", json.loads(said(*hindsight, "--store", FOLDER / "r.db"))["regret"], once)
    told = [m.group(1) for (f,) in sqlite3.connect(FOLDER / "r.db").execute("select fingerprint from runs") if (m := re.search(r" told=(\S+)", f))]
    same("schedules kept, and all different", (len(told), len(set(told))), (once["schedules"], once["schedules"]))
    same("schedules: exhaustive", once["exhaustive_replications"], 0)
    print("\n".join(f"FAILED: {b[:300]}" for b in BAD[:20]))
    print(f"{len(rows)} runs kept, {CHECKED} columns worked out again")
    return 1 if BAD or CHECKED < 2000 else 0


sys.exit(main())
