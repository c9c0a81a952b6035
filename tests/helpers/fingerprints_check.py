#!/usr/bin/env python3
"""A fingerprint tells apart what can give other results: each column of a trace, each key of a machine's events, each setting, and
each number of a machine's and a model's file has a part in it. A trace that is written and read again keeps its own."""
import concurrent.futures
import copy
import json
import os
import pathlib
import re
import subprocess
import sys

from numbers_check import changed, leaves

XPUSIM, FOLDER = sys.argv[1], pathlib.Path(sys.argv[2])
BAD = []
HEAD = ("request_id,session_id,turn,class,arrival_s,gap_s,input_tokens,output_tokens,prefix_tokens,max_output_tokens,gap_kind,client_id,priority,prefix_group,"
        "ttft_slo_ms,tbt_slo_ms,deadline_s,cancel_s,until_s,background,starts_job,ends_with,prefix_of,parent_ids,model")
# Two sessions, the second behind the first one's end; a request behind another with the prompt of a third.
ROWS = ["0,0,0,reactive,1,,40,5,0,9,think,0,0,,100,50,9,,,0,0,,,,", "1,0,1,reactive,,2,60,5,40,9,think,0,0,,100,50,9,,,0,0,,,,",
        "2,1,0,proactive,2,,50,6,0,9,think,0,0,,,,,,,0,0,,,,", "3,2,0,proactive,,3,50,6,20,9,think,0,0,,,,,,,0,0,,2,2,"]
# What each column becomes, and in which row. Ids are places: they are taken as they are.
OTHER = {"class": (2, "reactive"), "arrival_s": (0, "1.000000001"), "gap_s": (1, "2.000000001"), "input_tokens": (0, "41"), "output_tokens": (0, "6"), "prefix_tokens": (1, "39"),
         "max_output_tokens": (0, "10"), "gap_kind": (1, "tool"), "client_id": (0, "1"), "priority": (0, "-1"), "prefix_group": (0, "1"), "ttft_slo_ms": (0, "101"), "tbt_slo_ms": (0, "51"),
         "deadline_s": (0, "9.5"), "cancel_s": (0, "8"), "background": (3, "1"), "ends_with": (3, "0"), "prefix_of": (3, ""), "parent_ids": (3, "0"),
         "starts_job": (1, "1"), "until_s": (1, "77"), "request_id": (1, "9"), "session_id": (2, "9"), "model": (2, "draft")}
EVENT = {"at_s": 1, "every_s": 2, "until_s": 9, "memory_mib": 900000, "power_w": 9, "frames_per_s": 20, "source": "battery", "battery_j": 5e6, "battery_full_j": 6e6, "window": "open"}
EVENTS = {"at_s": 1.5, "every_s": 2.5, "until_s": 9.5, "memory_mib": 900001, "power_w": 8, "frames_per_s": 21, "source": "mains", "battery_j": 5.1e6, "battery_full_j": 6.1e6, "window": "closed"}
WORK = "--workload w1:n=2"


def fingerprint(words, part="trace"):
    r = subprocess.run([XPUSIM, "run", "--policy", "fcfs", *words.split(), "--json", "-q"], capture_output=True, text=True, stdin=subprocess.DEVNULL, timeout=300)
    if r.returncode not in (0, 1) or not r.stdout.strip():
        return f"refused: {r.stderr.strip()[:160]}"
    return re.search(rf"{part}=(\w+)", json.loads(r.stdout)["fingerprint"]).group(1)


def traces():
    columns = HEAD.split(",")

    def write(name, rows):
        (FOLDER / name).write_text("\n".join(["# xpusim-trace v2", HEAD, *rows]) + "\n")
        return fingerprint(f"--trace {FOLDER / name}")
    whole = write("whole.csv", ROWS)
    if whole.startswith("refused"):
        BAD.append(whole)
    missing = [c for c in columns if c not in OTHER and c != "turn"]
    if missing:
        BAD.append(f"columns without another value: {missing}")
    for column, (row, value) in OTHER.items():
        cells = ROWS[row].split(",")
        cells[columns.index(column)] = value
        if column == "prefix_of":  # a prompt that begins like nobody's
            cells[columns.index("prefix_tokens")] = "0"
        got = write(f"other-{column}.csv", ROWS[:row] + [",".join(cells)] + ROWS[row + 1:])
        if got == whole or got.startswith("refused"):
            BAD.append(f"column {column}: {value} instead of {ROWS[row].split(',')[columns.index(column)]!r}: {got}")


def events():
    def write(event, name):
        (FOLDER / name).write_text(json.dumps({"machine": [{"at_s": 0, "battery_j": 5e6, "battery_full_j": 6e6}, event]}))
        return fingerprint(f"{WORK} --machine {FOLDER / name}")
    seen = {}
    for key in EVENT:
        seen[key] = write({**EVENT, key: EVENTS[key]}, f"event-{key}.json")
    seen["none"] = write(EVENT, "event.json")
    alike = [k for k, v in seen.items() if v.startswith("refused") or list(seen.values()).count(v) > 1]
    if alike:
        BAD.append(f"events of one fingerprint, or refused: { {k: seen[k] for k in alike} }")
    # events go into a trace and come back
    subprocess.run([XPUSIM, "trace", "gen", "--workload", "w1:n=2", "--machine", str(FOLDER / "event.json"), "-o", str(FOLDER / "with.csv")], check=True, capture_output=True)
    if fingerprint(f"--trace {FOLDER / 'with.csv'}") != seen["none"]:
        BAD.append("events of a trace that was written are others")


def written():
    """A workload that is written and read again is the same trace."""
    for work in ("w1:n=5", "mixed:sessions=1,duration_s=120", "mixed:arrival=closed,duration_s=60", "summary:n=5", "coding-agent", "leader-subagents", "mixed:duration_s=60,proactive=bfcl"):
        for seed in (1, 7):
            path = FOLDER / "written.csv"
            subprocess.run([XPUSIM, "trace", "gen", "--workload", work, "--seed", str(seed), "-o", str(path)], check=True, capture_output=True)
            a, b = fingerprint(f"--workload {work} --seed {seed}"), fingerprint(f"--trace {path}")
            if a != b or a.startswith("refused"):
                BAD.append(f"{work}, seed {seed}: {a}, and written and read {b}")


def other_value(r):
    """Another value of a setting within its range."""
    choices = r["range"].split("|")
    if len(choices) > 1:
        return next(c for c in choices if c != r["default"] and c not in ("package", "eagle"))
    low, high = map(float, r["range"].split(".."))
    value = float(r["default"])
    return f"{value + 1:.0f}" if r["unit"] in ("tokens",) or value == int(value) and value + 1 <= high else f"{(value * 1.25 if value > 0 else low + (high - low) / 8):.9g}"


def settings():
    whole = fingerprint(WORK, "config")
    names = {"sim.contention": "none", "sim.hwmodel": "per-op", "sim.speculation.dataset": "ui", "sim.kv_capacity_tokens": "4000", "sim.speculation.model": "llama-3.2-1b"}
    rows = json.loads(subprocess.run([XPUSIM, "list", "setting", "--json"], capture_output=True, text=True).stdout)
    for r in rows:
        value = names.get(r["path"]) or other_value(r)
        got = fingerprint(f"{WORK} --set {r['path']}={value}", "config")
        if got == whole:
            BAD.append(f"setting {r['path']}={value} has no part in the fingerprint")
        elif got.startswith("refused"):
            BAD.append(f"setting {r['path']}={value}: {got}")
    if len(rows) < 40:
        BAD.append(f"only {len(rows)} settings")


def files():
    tasks = []
    for kind, name in (("soc", "core-ultra-5-125h"), ("llm", "llama-3.2-3b")):
        tree = json.loads(pathlib.Path(f"hwmodels/{kind}/{name}.json").read_text())
        (FOLDER / f"{name}.json").write_text(json.dumps(tree))
        tasks += [(kind, name, tree, path) for path in leaves(tree)]

    def one(task):
        kind, name, tree, path = task
        file = FOLDER / f"{name}-{'.'.join(map(str, path))}.json"
        for factor in (1.25, 0.75):
            file.write_text(json.dumps(changed(copy.deepcopy(tree), path, factor)))
            got = fingerprint(f"{WORK} --{kind} {file}", "config")
            if not got.startswith("refused"):
                return None if got != whole[kind] else f"{kind} {name}: {'.'.join(map(str, path))} has no part in the fingerprint"
        return None
    whole = {kind: fingerprint(f"{WORK} --{kind} {FOLDER / name}.json", "config") for kind, name in (("soc", "core-ultra-5-125h"), ("llm", "llama-3.2-3b"))}
    tasks = tasks[::3]  # a third of the numbers, which share their readers
    with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        BAD.extend(b for b in pool.map(one, tasks) if b)


def main():
    for part in (traces, events, written, settings, files):
        part()
    print("\n".join(f"FAILED: {b}" for b in BAD))
    print(f"{len(OTHER)} columns, {len(EVENT)} keys of events")
    return 1 if BAD else 0


if __name__ == "__main__":
    sys.exit(main())
