"""Commands whose numbers are worked out again (tests/helpers/printed_check.py): why a request took so long, who delays
whom, sweeps, the gate and claims."""
import csv
import io
import json
import os

from printed import interval_text, moments, rows_of

CLASSES = ("reactive", "proactive")


def warnings(d):
    return ["warning: " + w for w in d["warnings"]]


# ---- explain

def latency(x, request, *options):
    """End to end latency of a request of a run, by its row of requests."""
    path = os.path.join(x.folder, "latency.csv")
    x.known.pop(("run", *options, "--requests", path), None)
    x.text("run", *options, "--requests", path)
    row = next(r for r in rows_of(path) if r["request_id"] == str(request))
    return float(row["finish_s"]) - float(row["arrival_s"]), row


def only_session(x, request, trace):
    """A trace with the turns of one session up to a request, the request's number there."""
    with open(trace) as f:
        lines = f.read().split("\n")
    at = next(i for i, line in enumerate(lines) if line.startswith("request_id"))
    rows = list(csv.DictReader(lines[at:]))
    own = next(r for r in rows if r["request_id"] == str(request))
    keep = {r["request_id"] for r in rows if r["session_id"] == own["session_id"] and int(r["turn"]) <= int(own["turn"])}
    path = os.path.join(x.folder, f"alone-{request}.csv")
    with open(path, "w") as f:
        f.write("\n".join(lines[:at + 1] + [l for l in lines[at + 1:] if l.split(",")[0] in keep]) + "\n")
    return path


def explain(x, request, policy, work, seed):
    options = ["--policy", policy, "--workload", work, "--seed", str(seed)]
    d = x.document("explain", "--request", str(request), *options)
    took, row = latency(x, request, *options)
    x.same("explain latency", d["latency_ns"] / 1e9, took)
    took = d["latency_ns"] / 1e9
    x.same("explain causes", sum(d["causes_ns"].values()), d["latency_ns"])
    trace = os.path.join(x.folder, "explain.csv")
    x.text("trace", "gen", "--workload", work, "--seed", str(seed), "-o", trace)
    alone = latency(x, request, "--policy", policy, "--seed", str(seed), "--trace", only_session(x, request, trace))[0]
    x.same("explain alone", d["otherwise"]["alone_s"], alone)
    x.same("explain uncontended", d["otherwise"]["uncontended_s"], latency(x, request, *options, "--set", "sim.contention=none")[0])
    if not d["otherwise"]["bound_s"] <= alone:
        x.fail("explain: the bound is above the latency alone")
    lines = [f"request {request} ({row['class']}), {row['input_tokens']} prompt and {row['output_tokens']} output tokens: "
             f"{took:.6f} s from arrival to last token"]
    lines += [f"{name} {ns / 1e9:.6f} s {ns / 1e7 / took:.1f} % …"
              for name, ns in sorted(d["causes_ns"].items(), key=lambda kv: -kv[1]) if ns != 0]
    if d["blockers"]:
        lines += ["who was in the way", "in all in its passes before it rest of a kernel"]
    for b in d["blockers"][:5]:
        parts = [b["tail_ns"] + b["queue_ns"] + b["shared_ns"], b["shared_ns"], b["queue_ns"], b["tail_ns"]]
        lines.append(f"request {b['request_id']} " + " ".join(f"{ns / 1e9:.6f} s" for ns in parts))
    totals = [b["tail_ns"] + b["queue_ns"] + b["shared_ns"] for b in d["blockers"]]
    if totals != sorted(totals, reverse=True):
        x.fail("explain: those in the way are not in order")
    o = d["otherwise"]
    lines.append("otherwise")
    for name, s in (("DDR shared at no loss", o["uncontended_s"]), ("alone, same policy", o["alone_s"]),
                    ("alone, no policy below", o["bound_s"])):
        lines.append(f"{name} {s:.6f} s {100 * (s / took - 1):+.1f} %")
    x.printed(f"explain --request {request}", x.text("explain", "--request", str(request), *options), lines + warnings(d))


def mean_of(seconds, n):
    """A class without requests has no mean."""
    return f"{seconds / n:.4f} s" if n else "-"


def interference(x, policy, work, seed):
    """Sums over what `explain` says of each request by itself."""
    options = ["--policy", policy, "--workload", work, "--seed", str(seed)]
    d = x.document("explain", "--interference", *options)
    i = d["interference"]
    path = os.path.join(x.folder, "all.csv")
    x.text("run", *options, "--requests", path)
    of = {r["request_id"]: r["class"] for r in rows_of(path)}
    sums = {c: {"requests": 0, "latency_s": 0.0, "causes": {}, "by": {b: [0, 0, 0] for b in CLASSES}} for c in CLASSES}
    for number_, cls in of.items():
        one, s = x.document("explain", "--request", number_, *options), sums[cls]
        s["requests"] += 1
        s["latency_s"] += one["latency_ns"] / 1e9
        for cause, ns in one["causes_ns"].items():
            s["causes"][cause] = s["causes"].get(cause, 0) + ns / 1e9
        for b in one["blockers"]:
            by = s["by"][of[str(b["request_id"])]]
            by[0] += (b["tail_ns"] + b["queue_ns"]) / 1e9
            by[1] += b["tail_ns"] / 1e9
            by[2] += b["shared_ns"] / 1e9
    for c in CLASSES:
        x.same(f"interference {c} requests", i[c]["requests"], sums[c]["requests"])
        x.same(f"interference {c} latency", i[c]["latency_s"], sums[c]["latency_s"])
        for cause, s in sums[c]["causes"].items():
            x.same(f"interference {c} {cause}", i[c]["causes_s"][cause], s)
        for by in CLASSES:
            for k, key in enumerate(("wait_s", "tail_s", "shared_s")):
                x.same(f"interference {c} by {by} {key}", i[c]["by"][by][key], sums[c]["by"][by][k])
    n = {c: sums[c]["requests"] for c in CLASSES}
    lines = [f"mean time of a request, by cause ({n['reactive']} reactive, {n['proactive']} proactive)", "cause reactive proactive"]
    for cause in i["reactive"]["causes_s"]:
        if sum(sums[c]["causes"].get(cause, 0) for c in CLASSES) > 0:
            lines.append(cause + "".join(f" {mean_of(sums[c]['causes'].get(cause, 0), n[c])}" for c in CLASSES) + " …")
    lines.append("latency" + "".join(f" {mean_of(sums[c]['latency_s'], n[c])}" for c in CLASSES) + " their sum")
    lines += ["who was in the way: mean wait of a victim (of it the rest of a kernel that was running)",
              "victim behind reactive behind proactive"]
    for c in CLASSES:
        lines.append(c + "".join(f" {mean_of(sums[c]['by'][b][0], n[c])} ({mean_of(sums[c]['by'][b][1], n[c])})" for b in CLASSES))
    lines += ["who shared the passes: mean time by which they took longer", "victim for reactive for proactive"]
    lines += [c + "".join(f" {mean_of(sums[c]['by'][b][2], n[c])}" for b in CLASSES) for c in CLASSES]
    x.printed("interference", x.text("explain", "--interference", *options), lines + warnings(d))


# ---- sweep

def sweep(x, policies, work, seeds):
    """Each row of a sweep's export is a run by itself; the counts are those of the rows."""
    spec, store = os.path.join(x.folder, "spec.json"), os.path.join(x.folder, "sweep.db")
    with open(spec, "w") as f:
        json.dump({"name": "printed", "base": {"workload": work}, "axes": {"policy": policies}, "replications": seeds,
                   "metrics": ["reactive.*", "all.*", "energy*", "duration_s"]}, f)
    first = x.run("sweep", spec, "-o", store, "--export", "csv")
    again = x.run("sweep", spec, "-o", store)
    n = len(policies) * seeds
    for r, done, found in ((first, n, 0), (again, 0, n)):
        want = f"xpusim: {spec}: {done} runs done, {found} found in the store, 0 failed"
        if want not in r.stderr.split("\n"):
            x.fail(f"sweep: wanted {want!r}, printed {r.stderr!r}")
    dry = x.text("sweep", spec, "-o", store, "--dry-run")
    x.printed("sweep --dry-run", dry, [f"{spec}: {len(policies)} points, {n} runs, {n} of them in the store"])
    rows = list(csv.DictReader(io.StringIO(first.stdout)))
    x.same("sweep rows", len(rows), n)
    for row in rows:
        alone = x.document("run", "--policy", row["policy"], "--workload", work, "--seed", row["seed"])["metrics"]
        for name, text in row.items():
            if name in alone:
                x.same(f"sweep {row['policy']} {row['seed']} {name}", float(text) if text else None, alone[name])


# ---- gate

MATRIX = {"format": 1, "groups": [
    {"name": "small", "soc": "core-ultra-5-125h", "llm": "llama-3.2-3b", "test": "exact", "seed": 1, "set": [],
     "workload": "mixed:reactive_per_min=6,proactive_per_min=6,duration_s=60", "policies": ["fcfs", "agent-xpu-v2"]}]}
# What is changed in the recorded values of each metric in turn: by replication. Then the lower is better, and the higher.
CHANGES = [(1 / 1.1, 1), (1, 1.25), (1 / 1.3, 1.02), (1, 1), (1 + 1e-7, 1), (1.5, 1 / 1.01), (1.000001, 1.1), (1 / 1.07, 1 / 1.08),
           (1, 1 / 3)]


def gate(x):
    """A gate's table against a record in which values were changed by hand: verdicts, changes, directions and counts."""
    small, changed = (os.path.join(x.folder, f) for f in ("small.json", "changed.json"))
    with open(small, "w") as f:
        json.dump(MATRIX, f)
    x.run("gate", "--baseline", small, "--update")
    with open(small) as f:
        record = json.load(f)
    now = [dict(r["metrics"]) for r in record["results"]]
    names = list(now[0])
    for k, r in enumerate(record["results"]):
        r["metrics"] = {m: [v * c for v, c in zip(r["metrics"][m], CHANGES[(i + 4 * k) % len(CHANGES)])] for i, m in enumerate(names)}
    with open(changed, "w") as f:
        json.dump(record, f)
    ways = {m["name"]: m["better"] for m in x.document("list", "metric")}
    better = {m: next(w for name, w in ways.items() if name == m or name == m.split(".", 1)[-1] or f".{name}." in f".{m}") for m in names}
    lines, count, data = ["group policy metric baseline measured change p"], {}, []

    def row(verdict, group, policy, metric, rest, **values):
        lines.append(f"{verdict} {group} {policy} {metric} {rest}")
        count[verdict] = count.get(verdict, 0) + 1
        data.append({"verdict": verdict, "alarm": verdict == "REGRESSION", "group": group, "policy": policy, "metric": metric, **values})
    for r, after in zip(record["results"], now):
        row("OK", "small", r["policy"], "status", "- - - -")
        for m in names:
            row(*judged(r, m, after[m], better[m]))
            data[-1].update(baseline=moments(r["metrics"][m])[1], measured=moments(after[m])[1])
    for r in record["results"]:
        row("OK", "parameters", r["policy"], "parameters", "- - - -")
    alarms = count.get("REGRESSION", 0)
    order = ("OK", "REGRESSION", "DRIFT", "GAIN", "STATUS", "ADDED", "REMOVED")
    counts = ", ".join(f"{count[v]} {v}" for v in order if count.get(v))
    args = ("gate", "--baseline", changed, "--all")
    x.printed("gate", x.text(*args, status=(1,)), lines + [f"{len(data)} rows: {counts}; {'FAILED' if alarms else 'passed'}"])
    d = x.document(*args, status=(1,))
    x.same("gate alarms", d["alarms"], alarms)
    if d["passed"] != (alarms == 0) or d["counts"] != {v: count.get(v, 0) for v in order}:
        x.fail(f"gate: passed {d['passed']}, counts {d['counts']}, worked out {count}")
    for got, want in zip(d["rows"], data, strict=True):
        for key, value in want.items():
            if isinstance(value, float):
                x.same(f"gate {want['policy']} {want['metric']} {key}", got[key], value)
            elif got[key] != value:
                x.fail(f"gate {want['policy']} {want['metric']}: {key} {got[key]}, worked out {value}")


def judged(r, metric, after, better):
    """Verdict, group, policy, metric and the rest of a gate's row by the rule for equal seeds."""
    was, tolerance = r["metrics"][metric], 1e-5
    before, mean = moments(was)[1], moments(after)[1]
    percent = 100 * (mean - before) / abs(before)
    change = f"{percent:+.1e} %" if percent != 0 and abs(percent) < 0.1 else f"{percent:+.2f} %"
    changes = [(a - b) / abs(b) for a, b in zip(after, was)]
    sign = {"lower": 1, "higher": -1, "neither": 0}[better]
    worst = max(range(len(changes)), key=lambda k: sign * changes[k])
    most = max(range(len(changes)), key=lambda k: abs(changes[k]))
    verdict, detail = "DRIFT", ""
    if changes[most] == 0:
        verdict = "OK"
    elif sign == 0:
        detail = f"replication {most}: {100 * changes[most]:+.3g} %"
    else:
        worse = sign * changes[worst] > tolerance
        k = worst if worse else most
        verdict = "REGRESSION" if worse else "GAIN" if abs(changes[k]) > tolerance else "DRIFT"
        says = sign * changes[k] > 0
        mean_worse = sign * (mean - before) > 0
        other = ("mean is worse; " if mean_worse else "mean improved; ") if mean != before and mean_worse != says else ""
        detail = (f"{other}replication {k} {'worse' if says else 'better'} by {100 * abs(changes[k]):.3g} %, "
                  f"tolerance {100 * tolerance:.3g} %")
    return verdict, "small", r["policy"], metric, f"{before:.6g} {mean:.6g} {change} - {detail}"


# ---- claims

def claims(x, ids):
    """Every check's row of claims, and how many came out how."""
    args = ("claims", *ids, "--replications", "2")
    d = x.document(*args)
    lines, count, there = [], {}, {}
    lines += ["2 traces from seed 1; mean [95 % interval]; percentile of the published value among single traces",
              f"Their range holds the next trace with probability {100 * (2 - 1) / (2 + 1):.0f} % only; 39 traces give 95 %."]
    for c in d:
        other = c.get("independent_verdict")
        lines.append(f"{c['id']} {c['verdict']}" + (f"; on the independent machine: {other}" if other else ""))
        lines.append(f"{c['paper']}, {c['where']}. {c['statement']}")
        if c.get("why"):
            lines.append(f"Reading \"{c['reading']}\"{', the one to take' if c['taken'] else ''}: {c['why']}")
        lines.append("published simulated percentile" + (" independent" if other else ""))
        for k in c["checks"]:
            spread = k["low"] is not None and k["low"] != k["high"]
            value = (f"{k['worst']:.4g} at worst" if spread and k["every_trace"] else
                     interval_text(k["simulated"], k["low"], k["high"]) if spread else f"{k['simulated']:.4g}")
            published = k["published"] if isinstance(k["published"], str) else f"{k['published']:g}"
            among = f"{k['percentile']:.0f}" if k["percentile"] is not None and spread else ""
            word = "for information" if k["informative"] else k["verdict"]
            s, low, high = (k["independent_" + w] for w in ("simulated", "low", "high"))
            there_text = "" if not other else ("‥" if k["every_trace"] and low != high else
                                               interval_text(s, low, high) if low != high else f"{s:.4g}")
            there_word = "" if not other else ", " + ("for information" if k["informative"] else k["independent_verdict"])
            lines.append(f"{k['name']} {published} {value} {k['unit']} {among} {word} {there_text}{there_word}")
        lines.append(c["reason"])
        if c["counts"]:
            count[c["verdict"]] = count.get(c["verdict"], 0) + 1
            if other:
                there[other] = there.get(other, 0) + 1
    verdicts = ("reproduced", "calibrated", "compatible, not decided", "direction", "not reproduced", "not modellable")
    for of, counts in (("", count), ("on the independent machine, ", there)):
        lines.append(f"{of}{sum(counts.values())} claims: " + ", ".join(f"{counts.get(v, 0)} {v}" for v in verdicts))
    x.printed("claims", x.text(*args), lines)
