#!/usr/bin/env python3
"""What sweeps and merges print, whole: counts of what is done, there, failed and to do follow from the steps taken; with --quiet only
results and errors are left."""
import csv
import io
import json
import pathlib
import sqlite3
import subprocess
import sys

XPUSIM, FOLDER = sys.argv[1], pathlib.Path(sys.argv[2])
BAD, CHECKED = [], 0
SPEC = {"name": "n", "base": {"workload": "mixed:reactive_per_min=20,proactive_per_min=20,duration_s=10"},
        "axes": {"policy": ["fcfs", "edf"], "rate": [0.5, 1, 2]}, "replications": 2, "metrics": ["all.finished"]}
RUNS = 2 * 3 * 2
MACHINE = pathlib.Path("hwmodels/soc/core-ultra-5-125h.json")


def same(what, got, want):
    global CHECKED
    CHECKED += 1
    if got != want:
        BAD.append(f"{what}: {got!r}, worked out {want!r}")


def run(*words, out="", err="", rc=0, what=None):
    """Runs a command. What it prints is all of `out` (None: not compared here) and `err`; with -q the same without notes."""
    words = [str(w) for w in words]
    r = subprocess.run([XPUSIM, *words], capture_output=True, text=True, stdin=subprocess.DEVNULL, timeout=60, cwd=FOLDER)
    name = what or " ".join(words)[:80]
    same(f"{name}: exit", r.returncode, rc)
    same(f"{name}: stderr", r.stderr, err)
    if out is not None:
        same(f"{name}: stdout", r.stdout, out)
    return r.stdout


def said(done, there, failed=0, file="s.json"):
    return f"xpusim: {file}: {done} runs done, {there} found in the store, {failed} failed\n"


def size(there, points=6, runs=RUNS, most=""):
    return f"s.json: {points} point{'s'[points == 1:]}, {most}{runs} runs, {there} of them in the store\n"


def stored(name):
    with sqlite3.connect(FOLDER / name) as db:
        return sorted(r[0] for r in db.execute("select name from sqlite_master where type = 'table'"))


def sweeps():
    run("sweep", "s.json", "--dry-run", out=size(0))
    run("sweep", "s.json", "--dry-run", "-o", "none.db", out=size(0))
    same("a dry run makes no store", (FOLDER / "none.db").exists(), False)
    run("sweep", "s.json", "-o", "a.db", "--shard", "0/3", err=said(4, 0))
    run("sweep", "s.json", "-o", "a.db", "--dry-run", out=size(4))
    run("sweep", "s.json", "-o", "a.db", "--shard", "0/3", err=said(0, 4))
    whole = run("sweep", "s.json", "-o", "a.db", "--export", "csv", out=None, err=said(8, 4))
    same("all runs are exported", len(whole.splitlines()), 1 + RUNS)
    run("sweep", "s.json", "-o", "a.db", "--dry-run", out=size(12))
    run("sweep", "s.json", "-o", "a.db", "-q")
    run("sweep", "-o", "a.db", "--export", "csv", out=whole)
    run("sweep", "s.json", "-o", "quiet.db", "-q", "--export", "csv", out=whole)
    rows = list(csv.DictReader(io.StringIO(whole)))
    same("points and replications", [(int(r["point"]), int(r["replication"])) for r in rows], [(p, k) for p in range(6) for k in range(1, 3)] if rows[0]["replication"] == "1" else
         [(p, k) for p in range(6) for k in range(2)])
    same("settings", [(r["set.policy"], float(r["set.rate"])) for r in rows[::2]], [(p, r) for p in ("fcfs", "edf") for r in (0.5, 1.0, 2.0)])
    lines = run("sweep", "-o", "a.db", "--export", "json", out=None).splitlines()
    same("JSON has as many runs", sum('"status":"ok"' in l for l in lines), RUNS)
    return whole


def changed_files():
    """Runs of a machine or workload that has changed since are not there, although the experiment's text is as it was."""
    soc = json.loads(MACHINE.read_text())
    other = json.loads(MACHINE.read_text())
    other["idle_power"]["value"] = other["idle_power"]["high"]
    for what, machine, tokens, there in ("new", soc, 60, 0), ("run", soc, 60, 4), ("machine", other, 60, 0), ("workload", soc, 61, 0), ("as it was", soc, 60, 4):
        (FOLDER / "soc.json").write_text(json.dumps(machine))
        (FOLDER / "w.json").write_text(json.dumps({"clients": [{"name": "a", "count": 2, "start_s": {"distribution": "uniform", "min": 0, "max": 4}, "prompt_tokens": tokens, "answer_tokens": 5}]}))
        (FOLDER / "f.json").write_text(json.dumps({"base": {"soc": "soc.json", "workload": "w.json"}, "axes": {"policy": ["fcfs", "edf"]}, "replications": 2}))
        run("sweep", "f.json", "-o", "f.db", "--dry-run", out=f"f.json: 2 points, 4 runs, {there} of them in the store\n", what=f"dry run, {what}")
        if what == "new":
            run("sweep", "f.json", "-o", "f.db", err=said(4, 0, file="f.json"))


def merges(whole):
    for i in range(3):
        run("sweep", "s.json", "-o", f"p{i}.db", "--shard", f"{i}/3", err=said(4, 0))
    run("merge", "-o", "m.db", "p0.db", "p2.db", err="xpusim: 2 stores merged into m.db\n")
    run("sweep", "s.json", "-o", "m.db", "--dry-run", out=size(8))
    run("merge", "-o", "m.db", "p1.db", "--export", "csv", out=whole, err="xpusim: 1 store merged into m.db\n")
    run("merge", "--complete", "-o", "q.db", "p0.db", "p1.db", "p2.db", "-q")
    run("merge", "-o", "q.db", "p0.db", "-q", "--export", "csv", out=whole)
    run("sweep", "s.json", "-o", "q.db", err=said(0, 12))
    r = subprocess.run([XPUSIM, "merge", "--complete", "-o", "part.db", "p0.db", "p1.db"], capture_output=True, text=True, cwd=FOLDER)
    same("a merge that lacks runs: exit", r.returncode, 1)
    same("a merge that lacks runs is no success", "merged into" in r.stderr, False)
    same("a merge that lacks runs says so", r.stderr.startswith("xpusim: error: "), True)


def failures():
    """A run over its time is a failed one, with the others there."""
    spec = dict(SPEC, axes={"policy": ["fcfs", "nonesuch-at-all"]})
    (FOLDER / "bad.json").write_text(json.dumps(spec))
    r = subprocess.run([XPUSIM, "sweep", "bad.json", "-o", "bad.db"], capture_output=True, text=True, cwd=FOLDER)
    same("a policy that nobody has: exit", r.returncode, 2)
    same("a policy that nobody has: no store", (FOLDER / "bad.db").exists(), False)
    until = dict(SPEC, axes={"policy": ["fcfs"]}, until={"all.finished": {"half_width": 0.001}}, max_replications=3, metrics=["all.finished"])
    (FOLDER / "s.json").write_text(json.dumps(until))
    run("sweep", "s.json", "--dry-run", out=size(0, 1, 3, "at most "))
    run("sweep", "s.json", "-o", "u.db", err=said(3, 0) + "xpusim: note: 1 point did not reach the half-widths in 3 replications\n")
    run("sweep", "s.json", "-o", "u.db", "-q")


def digits():
    """Both exports have the seeds of single runs to the last digit, and their values to the 15 digits of cJSON."""
    spec = dict(SPEC, base={"workload": "mixed:duration_s=60", "policy": "edf", "seed": 5537146003901659}, axes={"rate": [1]}, replications=20, metrics=["all.*"])
    (FOLDER / "d.json").write_text(json.dumps(spec))
    rows = list(csv.DictReader(io.StringIO(run("sweep", "d.json", "-o", "d.db", "--export", "csv", "-q", out=None))))
    trees = json.loads(run("sweep", "-o", "d.db", "--export", "json", "-q", out=None))
    spec["base"]["seed"] += 1
    (FOLDER / "d.json").write_text(json.dumps(spec))
    run("sweep", "d.json", "-o", "d.db", "-q")
    same("two seeds are two experiments", len(json.loads(run("sweep", "-o", "d.db", "--export", "json", "-q", out=None))), 2 * len(rows))
    same("seeds", [t["seed"] for t in trees], [int(r["seed"]) for r in rows])
    for row, tree in zip(rows, trees):
        one = json.loads(run("run", "--policy", "edf", "--workload", "mixed:duration_s=60", "--seed", row["seed"], "--json", "-q", out=None))["metrics"]
        same(f"values of seed {row['seed']}", [(n, float(row[n]), v) for n, v in tree["metrics"].items() if v is not None and max(abs(float(row[n]) - v), abs(v - one[n])) > 1e-14 * abs(v)], [])


def half_widths():
    """The interval that `compare` prints of a skewed metric is as narrow as `until` asks for."""
    spec = dict(SPEC, base={"workload": "mixed:duration_s=200"}, axes={"policy": ["fcfs"], "seed": [1, 2, 3]}, replications=4, max_replications=60,
                until={"reactive.e2e_s.mean": {"half_width_frac": 0.4}}, metrics=["reactive.e2e_s.mean"])
    (FOLDER / "h.json").write_text(json.dumps(spec))
    run("sweep", "h.json", "-o", "h.db", "-q")
    printed = [c["policies"]["fcfs"]["reactive.e2e_s.mean"] for c in json.loads(run("compare", "--store", "h.db", "--json", "-q", out=None))]
    same("points", len(printed), 3)
    same("half-widths", [round((x["high"] - x["low"]) / 2 / x["mean"], 3) for x in printed if x["high"] - x["low"] > 2 * 0.4 * x["mean"]], [])


def main():
    (FOLDER / "s.json").write_text(json.dumps(SPEC))
    whole = sweeps()
    same("tables of a store", len(stored("a.db")) > 1, True)
    merges(whole)
    changed_files()
    failures()
    digits()
    half_widths()
    print("\n".join(f"FAILED: {b}" for b in BAD[:20]))
    print(f"printed by sweeps and merges, worked out again: {CHECKED}")
    return 1 if BAD or CHECKED < 90 else 0


if __name__ == "__main__":
    sys.exit(main())
