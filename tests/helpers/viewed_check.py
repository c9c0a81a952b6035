#!/usr/bin/env python3
"""The data of the live page is worked out again from the commands that print the same run: its requests, its timeline, explanations,
metrics and the decision in which two runs part."""
import bisect
import collections
import csv
import json
import math
import pathlib
import re
import subprocess
import sys

XPUSIM, FOLDER = sys.argv[1], pathlib.Path(sys.argv[2])
BAD, CHECKED = [], collections.Counter()
LOADS = [("agent-xpu-v2", "--workload mixed:reactive_per_min=20,proactive_per_min=20,duration_s=40,output_scale=0.3 --seed 3"),
         ("edf", "--workload mixed:reactive_per_min=20,proactive_per_min=20,duration_s=40,output_scale=0.3 --seed 3"),
         ("sarathi-hetero", "--workload mixed:reactive_per_min=9,proactive_per_min=30,duration_s=30,output_scale=0.2 --seed 5")]


def said(command, status=0):
    r = subprocess.run([XPUSIM, *command.split()], capture_output=True, text=True, stdin=subprocess.DEVNULL, timeout=300)
    if r.returncode != status:
        sys.exit(f"FAILED: exit {r.returncode}: {command}\n{r.stderr[:300]}")
    return r.stdout


def same(what, got, want, within=0.0):
    CHECKED[what.split()[0]] += 1
    if got != want and not (isinstance(got, (int, float)) and isinstance(want, (int, float)) and abs(got - want) <= within):
        BAD.append(f"{what}: {str(got)[:200]}, worked out {str(want)[:200]}")


def rows_of(table):
    """Columns of differences, one behind the other, as rows."""
    v = [int(x) for x in table["delta"].split(",")] if table["rows"] else []
    n, columns = table["rows"], []
    for i in range(len(table["columns"])):
        at, column = 0, []
        for x in v[i * n:(i + 1) * n]:
            at += x
            column.append(at)
        columns.append(column)
    same("tables: numbers", len(v), n * len(table["columns"]))
    return [dict(zip(table["columns"], r)) for r in zip(*columns)]


def ns(seconds):
    return round(float(seconds) * 1e9) if seconds not in ("", "nan") else -1


def requests(name, s, policy, load, blockers):
    lines = [l for l in (FOLDER / "requests.csv").read_text().split("\n") if not l.startswith("#")]
    want = {int(r["request_id"]): r for r in csv.DictReader(lines)}
    got = rows_of(s["requests"])
    same(f"requests {name}: how many", sorted(r["request_id"] for r in got), sorted(want))
    for r in got:
        w = want[r["request_id"]]
        for a, b in (("session_id", int(w["session_id"])), ("turn", int(w["turn"])), ("client_id", int(w["client_id"])), ("class", ["reactive", "proactive"].index(w["class"])),
                     ("input_tokens", int(w["input_tokens"])), ("output_tokens", int(w["output_tokens"])), ("reused_tokens", int(w["reused_tokens"])),
                     ("preemptions", int(w["preemptions"])), ("finished", int(w["state"] == "finished")), ("arrival_ns", ns(w["arrival_s"])),
                     ("first_service_ns", ns(w["start_s"])), ("first_token_ns", ns(w["first_token_s"])), ("end_ns", ns(w["finish_s"])), ("model", 0), ("job", -1)):
            same(f"requests {name}: {r['request_id']}.{a}", r[a], b)
        causes = sum(v for k, v in r.items() if k.startswith("cause."))
        same(f"requests {name}: {r['request_id']}: causes add up", causes, r["end_ns"] - r["arrival_ns"])
    for r in sorted(got, key=lambda r: -r["blockers"])[:3] + got[:1]:
        x = json.loads(said(f"explain --policy {policy} {load} --request {r['request_id']} --json"))
        same(f"causes {name}: {r['request_id']}", {k[6:]: v for k, v in r.items() if k.startswith("cause.")}, x["causes_ns"])
        same(f"causes {name}: {r['request_id']}: blockers", r["blockers"], len(x["blockers"]))
        own = [b for b in blockers if b["request_id"] == r["request_id"]]
        same(f"causes {name}: {r['request_id']}: the longest", [(b["blocker_id"], b["tail_ns"], b["queue_ns"], b["shared_ns"]) for b in own],
             [(b["request_id"], b["tail_ns"], b["queue_ns"], b["shared_ns"]) for b in x["blockers"][:12]])
    return got


def launches(name, s, members):
    """Each with its start and end, as the timeline has them: begun on a lane, ended on it."""
    events = json.loads((FOLDER / "timeline.json").read_text())["traceEvents"]
    lane_of, open_at, want, leads = {}, {}, collections.defaultdict(list), collections.Counter()
    for e in events:
        if e["ph"] == "M" and e["name"] == "thread_name" and e["pid"] == 1 and e["args"]["name"] in s["devices"]:
            lane_of[e["tid"]] = s["devices"].index(e["args"]["name"])
    first = {d: t for t, d in lane_of.items()}
    for e in events:
        d = next((d for d, t in first.items() if e["pid"] == 1 and t <= e["tid"] < t + 16), None)
        if d is None or e["ph"] not in "BE":
            continue
        lane, at = e["tid"] - first[d], round(e["ts"] * 1000)
        if e["ph"] == "B":
            open_at[d, lane] = (at, e["args"], e["name"])
        elif (d, lane) in open_at:
            begun, args, what = open_at.pop((d, lane))
            want[d, lane].append((begun, at, args["rows"], args["sequences"], args["request"], what))
            leads[d] += min(1000 * args.get("lead_us", 0), at - begun)
    ended, got, outside = collections.Counter(), collections.defaultdict(list), collections.Counter()
    for r in rows_of(s["launches"]):
        key = r["device"], r["lane"]
        start = ended[key] + r["gap_ns"]
        ended[key] = end = start + r["busy_ns"] + r["idle_ns"]
        if (r["launches"], r["idle_ns"]) != (1, 0):
            BAD.append(f"launches {name}: {key} at {start}: {r}")
        got[key].append((start, end, r["rows"], len(members[r["set"]]), members[r["set"]][0], ["prefill", "decode", "mixed"][r["kind"]]))
        outside[r["device"]] += r["busy_ns"] * r["outside_thousandths"] // 1000
        if r["wait_ns"] < 0 or r["outcome"] not in (0, 1, 2, 3) or not 0 <= r["outside_thousandths"] <= 1000:
            BAD.append(f"launches {name}: {r}")
    same(f"launches {name}: lanes", sorted(got), sorted(want))
    for key in want:
        same(f"launches {name}: {key}: how many", len(got[key]), len(want[key]))
        for a, b in zip(got[key], want[key]):
            CHECKED["launches"] += 5
            if a[:5] != b[:5]:
                same(f"launches {name}: {key}: start, end, rows, sequences, first request", a[:5], b[:5])
            if not b[5].startswith(a[5]) and a[5] != "mixed":
                BAD.append(f"launches {name}: {key}: {a}, timeline {b}")
    return got, outside, leads


def cells(name, s, requests_, metrics):
    rows = rows_of(s["cells"])
    width, end = s["cell_ns"], s["end_ns"]
    if width % 1000000 or (width // 1000000) & (width // 1000000 - 1):
        BAD.append(f"cells {name}: {width} ns, which is no power of two of milliseconds")
    same(f"cells {name}: how many", len(rows), -(-end // width))
    lives = [[(q["arrival_ns"], q["end_ns"]) for q in requests_ if q["class"] == k] for k in (0, 1)]
    for i, r in enumerate(rows):
        begin, finish = i * width, min((i + 1) * width, end)
        for k, cls in enumerate(("reactive", "proactive")):
            alive = sum(min(finish, b) - max(begin, a) for a, b in lives[k] if a < finish and b > begin)
            CHECKED["cells"] += 1
            if abs(r[f"live_{cls}_hundredths"] - 100 * alive / (finish - begin)) > 0.51:
                BAD.append(f"cells {name}: {i}: {cls}: {r}, worked out {100 * alive / (finish - begin)}")
    spans = [min((i + 1) * width, end) - i * width for i in range(len(rows))]
    total = lambda column: sum(r[column] * n for r, n in zip(rows, spans))
    energy = [(f"{d}_mw", f"{d}.energy_j") for d in s["devices"]] + [("compiler_mw", "compiler.energy_j"), ("host_mw", "host.energy_j")]
    for column, metric in energy:
        same(f"energies {name}: {metric}", total(column) * 1e-12, metrics[metric], 0.5e-12 * end + 1e-6 * metrics[metric])
    peak = s["ddr_peak_bytes_per_s"]
    same(f"energies {name}: DDR carried", total("ddr_carried_mb_per_s") * 1e-3 / peak, metrics["ddr.util_frac"] * end * 1e-9 , 0.5e-3 * end / peak + 1e-6)
    same(f"energies {name}: DDR demand", total("ddr_demand_mb_per_s") * 1e-3 / peak, metrics["ddr.demand_frac"] * end * 1e-9, 0.5e-3 * end / peak + 1e-6)
    most = max(r["kv_tokens"] for r in rows)
    if not 0 < most <= metrics["kv_peak_tokens"]:
        BAD.append(f"cells {name}: KV of {most} tokens, {metrics['kv_peak_tokens']} at most")


def kernels(name, policy, load, lanes, metrics):
    """All of the run's: as many as it counts, each within a launch of its device, and those of a window."""
    s = json.loads(said(f"view --policy {policy} {load} --from 0 --to 10000 --json"))["runs"][0]["schedule"]
    rows = rows_of(s["kernels"])
    same(f"kernels {name}: how many", len(rows), int(metrics["kernels"]))
    same(f"kernels {name}: window", (s["kernels_from_ns"], s["kernels_to_ns"]), (0, 10000 * 10**9))
    by_device = collections.defaultdict(list)
    for (d, _), own in lanes.items():
        by_device[d] += own
    for d in by_device:
        by_device[d].sort()
        own = sorted((r["begin_ns"], r["end_ns"]) for r in rows if r["device"] == d)
        CHECKED["kernels"] += len(own)
        starts = [a for a, *_ in by_device[d]]
        for begin, end in own:
            at = bisect.bisect_right(starts, begin)
            if not any(end <= b for _, b, *_ in by_device[d][max(0, at - 8):at]):
                BAD.append(f"kernels {name}: {begin} to {end} of device {d} is in no launch")
                break
    for r in rows:
        if not (0 < r["isolated_ns"] <= r["end_ns"] - r["begin_ns"] + 1) or r["op"] not in range(8) or r["layer"] < 0:
            BAD.append(f"kernels {name}: {r}")
            break
    middle = rows[len(rows) // 2]["begin_ns"] / 1e9
    low, high = round(middle, 3), round(middle, 3) + 0.25
    few = json.loads(said(f"view --policy {policy} {load} --from {low} --to {high} --json"))["runs"][0]["schedule"]
    same(f"kernels {name}: of a window", rows_of(few["kernels"]), [r for r in rows if round(low * 1e9) <= r["begin_ns"] < round(high * 1e9)])


def main():
    for policy, load in LOADS:
        view = json.loads(said(f"view --policy {policy} {load} --json"))
        result = json.loads(said(f"run --policy {policy} {load} --json --requests {FOLDER}/requests.csv --timeline {FOLDER}/timeline.json --timeline-detail launches -q"))
        run = view["runs"][0]
        s, metrics = run["schedule"], result["metrics"]
        same(f"runs {policy}: result", run["result"], result)
        same(f"runs {policy}: policy", (run["policy"], run["about"]["policy"], run["about"]["seed"]), (policy, policy, int(load.split()[-1])))
        same(f"runs {policy}: end", s["end_ns"] * 1e-9, metrics["duration_s"], 1e-6)
        same(f"runs {policy}: unfinished, joined", (s["unfinished"], s["joined"]), (0, False))
        soc = result["config"]["soc"]
        same(f"runs {policy}: devices", s["devices"], [d["name"] for d in soc["devices"]])
        members = collections.defaultdict(list)
        for m in rows_of(s["members"]):
            members[m["set"]].append(m["request_id"])
        found = requests(policy, s, policy, load, rows_of(s["blockers"]))
        lanes, outside, leads = launches(policy, s, members)
        for d, device in enumerate(s["devices"]):
            busy = sum(b - a for (k, _), own in lanes.items() if k == d for a, b, *_ in own)
            if busy and (d, 1) not in lanes:
                same(f"energies {policy}: {device} busy", (busy - leads[d]) * 1e-9 / metrics["duration_s"], metrics[f"{device}.busy_frac"], 1e-6)
                same(f"energies {policy}: {device} outside", outside[d] / busy, metrics[f"{device}.extrapolated_frac"] or 0.0, 2e-3)
        cells(policy, s, found, metrics)
        if policy != "edf":  # of devices next to each other
            kernels(policy, policy, load, lanes, metrics)
    (p, load), (q, _) = LOADS[:2]
    both = json.loads(said(f"view --policy {p} --policy {q} {load} --json"))
    diff = json.loads(said(f"diff --policy {p} --b-policy {q} {load} --json", 1))
    same("runs both: differences", [len(both["differences"])] + [r["policy"] for r in both["runs"]], [1, p, q])
    for k in ("decision", "a", "b"):
        same(f"runs both: {k}", both["differences"][0].get(k), diff[k])
    print("\n".join(f"FAILED: {b}" for b in BAD[:30]))
    print("worked out again: " + ", ".join(f"{n} of {k}" for k, n in CHECKED.items()))
    return 1 if BAD or sum(CHECKED.values()) < 10000 else 0


sys.exit(main())
