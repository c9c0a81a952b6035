#!/usr/bin/env python3
"""Every number that commands print is worked out again: the text from the JSON document, the document from runs by
themselves, and those from their requests. A command is one function below, which returns the lines that it must print
(tests/helpers/printed.py compares them)."""
import json
import os
import re
import sys

import printed_more as more
from printed import (Program, bootstrap_interval, fieller, holm, interval_text, method_of, moments, nearest_rank, number,
                     p_of, rows_of, short, student_above, student_interval)

WORK = "mixed:reactive_per_min=6,proactive_per_min=12,duration_s=120"
STATS = ("mean", "p50", "p90", "p95", "p99", "max")
CLASSES = ("reactive", "proactive")


def near(a, b, part):
    return abs(a - b) <= part * max(abs(a), abs(b), 1e-12)


def warnings(d):
    return ["warning: " + w for w in d["warnings"]]


# ---- run

def latencies(x, path, d):
    """Metrics of the document against the requests of the run."""
    m, requests = d["metrics"], rows_of(path)
    done = [r for r in requests if r["state"] == "finished"]
    span = max(float(r["finish_s"]) for r in done) - min(float(r["arrival_s"]) for r in requests)
    for group in CLASSES + ("all",):
        of = [r for r in done if group in ("all", r["class"])]
        arrived = [r for r in requests if group in ("all", r["class"])]
        want = {"ttft_s": [float(r["first_token_s"]) - float(r["arrival_s"]) for r in of],
                "e2e_s": [float(r["finish_s"]) - float(r["arrival_s"]) for r in of],
                "tpot_s": [(float(r["finish_s"]) - float(r["first_token_s"])) / (int(r["output_tokens"]) - 1)
                           for r in of if int(r["output_tokens"]) > 1],
                "norm_e2e_per_token_s": [(float(r["finish_s"]) - float(r["arrival_s"])) /
                                         (int(r["input_tokens"]) + int(r["output_tokens"])) for r in of],
                "prefill_pending_s": [float(r["start_s"]) - float(r["arrival_s"]) for r in of],
                "decode_pending_s": [float(r["decode_pending_s"]) for r in of]}
        for name, v in want.items():
            of_it = {"mean": sum(v) / len(v), "max": max(v), **{f"p{p}": nearest_rank(v, p) for p in (50, 90, 95, 99)}}
            for stat in STATS:
                x.same(f"run {group}.{name}.{stat}", m[f"{group}.{name}.{stat}"], of_it[stat], 1e-6)
        x.same(f"run {group}.arrived", m[f"{group}.arrived"], len(arrived))
        x.same(f"run {group}.finished", m[f"{group}.finished"], len(of))
        x.same(f"run {group}.throughput", m[f"{group}.throughput_req_per_min"], 60 * len(of) / span, 1e-6)
        x.same(f"run {group}.output", m[f"{group}.output_tokens_per_s"], sum(int(r["output_tokens"]) for r in of) / span, 1e-6)


def asked(d):
    """How many requests arrived, and of how many, where not all did."""
    arrived, future = d["audit"]["arrived"], d["audit"]["future"]
    return f"{arrived} of {arrived + future} requests arrived" if future > 0 else f"{arrived} requests"


def run(x, *options):
    """`run`: tables of latencies, the machine, and what must be known of them."""
    path = os.path.join(x.folder, "requests.csv")
    d = x.document("run", *options, "--requests", path)
    latencies(x, path, d)
    m, c = d["metrics"], d["config"]
    title = {"ttft_s": "TTFT s", "tbt_s": "TBT s", "tpot_s": "TPOT s", "e2e_s": "E2E s",
             "norm_e2e_per_token_s": "E2E / (in + out) s", "prefill_pending_s": "prefill pending s",
             "decode_pending_s": "decode pending s"}
    lines = [f"{c['policy']} on {c['soc']['name']}, {c['llm']['name']}",
             f"{c['workload']}: {asked(d)}, seed {c['seed']}: {d['verdict']}"]
    for group in CLASSES:
        lines += [f"{group}: {m[group + '.finished']:.0f} of {m[group + '.arrived']:.0f} requests finished, "
                  f"{m[group + '.throughput_req_per_min']:.3g} per minute", " ".join(STATS)]
        lines += [f"{t} " + " ".join(number(m[f"{group}.{name}.{s}"]) for s in STATS) for name, t in title.items()]
    lines += [f"machine over {short(m['duration_s'])} s", "busy prefill decode J"]
    devices = [k[:-len(".prefill_frac")] for k in m if k.endswith(".prefill_frac")]
    for name in devices:
        shares = [f"{100 * m[f'{name}.{s}_frac']:.1f} %" for s in ("busy", "prefill", "decode")]
        x.same(f"run {name}: busy", m[f"{name}.busy_frac"], m[f"{name}.prefill_frac"] + m[f"{name}.decode_frac"], 1e-6)
        lines.append(" ".join([name, *shares, number(m[f"{name}.energy_j"])]))
    x.same("run energy", m["energy_j"], m["energy_idle_j"] + m["energy_active_j"], 1e-6)
    tokens = sum(int(r["input_tokens"]) + int(r["output_tokens"]) for r in rows_of(path) if r["state"] == "finished")
    x.same("run energy per token", m["energy_j_per_token"], m["energy_j"] / tokens, 1e-6)
    lines.append(f"energy {short(m['energy_j'])} J ({short(m['energy_idle_j'])} idle), {m['energy_j_per_token']:.4g} J per token, "
                 f"peak {m['peak_power_watts']:.3g} W; DDR {100 * m['ddr.util_frac']:.1f} % used, "
                 f"{100 * m['ddr.tier_high_frac']:.1f} % of time at high pressure")
    read = m.get("metered.energy_j")
    if read is not None:
        x.same("run metered per token", m["metered.energy_j_per_token"], read / tokens, 1e-6)
        x.same("run metered watts", m["metered.watts"], read / m["duration_s"], 1e-6)
        lines.append(f"a {d['metered_meter']} meter would read {short(read)} J ({short(read / d['metered_spread'])} to "
                     f"{short(read * d['metered_spread'])}), {read / tokens:.4g} J per token, {read / m['duration_s']:.3g} W in the mean")
    x.printed("run", x.text("run", *options), lines + warnings(d) + [d["fingerprint"]])


# ---- compare, ablate

def samples(x, d, options, labels):
    """Metrics of every policy and replication, each run by itself: [label][replication]."""
    return {p: [x.document("run", "--policy", p, "--seed", str(s), *options) for s in d["seeds"]] for p in labels}


def verdict_text(diff, base, relevance, p_holm):
    """What is said of a difference, from the values themselves."""
    n, mean, sd = moments(diff)
    if mean == 0 and sd == 0:
        return f"identical at n={n}"
    _, low, high = reported(diff)
    if max(abs(low), abs(high)) <= relevance * abs(base):
        return f"equal within {100 * relevance:g} %"
    if low <= 0 <= high:
        return f"no difference shown at n={n}"
    percent = 100 * abs(mean / base)
    percent = 10 * round(percent / 10) if percent >= 1000 else percent
    digits = 3 if percent < 0.1 else 1 if percent < 10 or 90 < percent < 100 else 0
    alone = p_of(diff)
    lost = (alone if p_holm is None else p_holm) > 0.05
    said = "significant" if not lost else "not significant" if alone > 0.05 else "not significant after Holm's correction"
    return f"{'lower' if mean < 0 else 'higher'} by {percent:.{digits}f} % ({said})"


def reported(v):
    return bootstrap_interval(tuple(v), 0.98) if method_of(v) == "bootstrap-t" else student_interval(v)


def family(p, n):
    """Holm's correction over all that is printed; the first metric has half of the level for itself."""
    first, rest = holm(p[:n]), holm(p[n:])
    if not rest:
        return first
    least = max([v for v in first if v is not None], default=0.0)
    double = [None if v is None else min(1.0, 2 * v) for v in first]
    least = max([v for v in double if v is not None], default=0.0)
    return double + [None if v is None else min(2 * v, max(v, least)) for v in rest]


def compare(x, name, command, options):
    """`compare` and what prints like it."""
    d = x.document(*command, *options)
    labels = list(d["policies"])
    own = [o for o in options if o not in ("--replications", str(d["replications"]))]
    single = [o for i, o in enumerate(own) if o != "--policy" and (i == 0 or own[i - 1] != "--policy")]
    runs = samples(x, d, single, labels)
    metrics = [m for m in printed_metrics(x.text(*command, *options), d["policies"][labels[0]])]
    values = {p: {m: [r["metrics"][m] for r in runs[p]] for m in d["policies"][p]} for p in labels}
    p_values = {m: [None if p == d["baseline"] else p_of([a - b for a, b in zip(values[p][m], values[d["baseline"]][m])])
                    for p in labels] for m in metrics}
    adjusted = family([v for m in metrics for v in p_values[m]], len(labels))
    lines = [f"{d['about']['soc']}, {d['about']['llm']}, {d['workload']}; {len(d['seeds'])} replications from seed {d['seed']}; "
             "mean [95 % interval]"] + ([d["sample_note"]] if d["sample_note"] else []) + warnings(d)
    lines += ["replications (UNDECIDED: too short to tell)", "STABLE UNDECIDED OVERLOADED failed"]
    for p in labels:
        count = [sum(r["verdict"] == v for r in runs[p]) for v in ("STABLE", "UNDECIDED", "OVERLOADED")]
        for key, n in zip(("stable", "undecided", "overloaded"), count):
            x.same(f"{name} {p} {key}", d["verdicts"][p][key], n)
        lines.append(f"{p} {count[0]} {count[1]} {count[2]} {len(d['seeds']) - sum(count)}")
    for i, m in enumerate(metrics):
        lines.append(m)
        for k, p in enumerate(labels):
            row, v, base = d["policies"][p][m], values[p][m], values[d["baseline"]][m]
            method = method_of(v)
            _, low, high = reported(v)
            x.same(f"{name} {p} {m} mean", row["mean"], moments(v)[1])
            if row["method"] != method:
                x.fail(f"{name} {p} {m}: method {row['method']}, worked out {method}")
            tolerance = 0.3 * (high - low) / max(abs(low), abs(high), 1e-9) if method == "bootstrap-t" else 1e-7
            x.same(f"{name} {p} {m} low", row["low"], low, tolerance)
            x.same(f"{name} {p} {m} high", row["high"], high, tolerance)
            word = {"student": "", "bootstrap-t": " (bootstrap-t)", "student-skewed": " (skewed: 85 %)"}[method]
            said = "baseline"
            if p != d["baseline"]:
                diff = [a - b for a, b in zip(v, base)]
                for key, want in zip(("ratio", "ratio_low", "ratio_high"), fieller(v, base)):
                    x.same(f"{name} {p} {m} {key}", row[key], want, 1e-6)
                for key, want in zip(("diff", "diff_low", "diff_high"), reported(diff)):
                    x.same(f"{name} {p} {m} {key}", row[key], want, 0.3 if method_of(diff) == "bootstrap-t" and key != "diff" else 1e-7)
                x.same(f"{name} {p} {m} p", row["p"], p_values[m][k], 1e-6)
                x.same(f"{name} {p} {m} p_holm", row["p_holm"], adjusted[i * len(labels) + k], 1e-6)
                said = verdict_text(diff, moments(base)[1], d["relevance_frac"], adjusted[i * len(labels) + k])
            lines.append(f"{p} {interval_text(row['mean'], row['low'], row['high'])}{word} {said}")
    x.printed(name, x.text(*command, *options), lines)


def printed_metrics(text, known):
    return [line for line in text.split("\n") if line in known]


# ---- search

def search(x, options, slos, load):
    """`search`: the table's ends, the tests they come from, and each test from runs at its rate."""
    d = x.document("search", *options)
    every = x.document("compare", "--policy", "fcfs", "--policy", "edf", "--workload", "mixed:duration_s=60", "--replications", "32")
    x.seeds = [str(s) for s in every["seeds"]]
    confidence = 0.6
    alpha = (1 - confidence) / (40 * 4)  # over every look at every rate that could be tried
    lines = [f"core-ultra-5-125h, llama-3.2-3b, {d['workload']}; seed 1"]
    lines += warnings(d)
    lines += [f"With {100 * confidence:g} % confidence the highest rate that holds lies between the rate shown to hold and the rate "
              "shown not to.", "Columns are factors on the workload's rates (x), requests a minute (/min) and means [interval of one test].",
              "holds: x /min value not: x /min value binding SLO"]
    messages = []
    for p, of in d["policies"].items():
        met = [t for t in of["tests"] if t["outcome"] == "met"]
        missed = [t for t in of["tests"] if t["outcome"] == "missed"]
        low = max(met, key=lambda t: t["rate_scale"], default=None)
        high = min(missed, key=lambda t: t["rate_scale"], default=None)
        for key, t in (("met", low), ("missed", high)):
            x.same(f"search {p} {key}", of[f"{key}_rate_scale"], t and t["rate_scale"])
            x.same(f"search {p} {key} rate", of[f"{key}_req_per_min"], t and t["req_per_min"])
        for t in of["tests"]:
            at_rate(x, p, t, slos, load, alpha)
        cells = [f"{t['rate_scale']:.3g} {t['req_per_min']:.4g} {interval_text(*[t['slos'][of['binding']][k] for k in ('mean', 'low', 'high')])}"
                 if t else "- - -" for t in (low, high)]
        lines.append(f"{p} {cells[0]} {cells[1]} {of['binding'] or '-'}")
        messages += [f"{p}: {of['message']}"] if of["message"] else []
    x.printed("search", x.text("search", *options), lines + messages)


def at_rate(x, policy, t, slos, load, alpha):
    """A test of a rate from its runs: means, intervals, and what they decide."""
    runs = [x.document("run", "--policy", policy, "--seed", s, *load(t["rate_scale"])) for s in x.seeds[:t["n"]]]
    duration_s = float(re.search(r"duration_s=(\d+)", " ".join(load(1)))[1])
    rate = 60 * sum(r["metrics"]["all.arrived"] for r in runs) / (duration_s * len(runs))
    x.same(f"search {policy} at {t['rate_scale']}: rate", t["req_per_min"], rate)
    wants = [(f"{m}{sign}{limit:g}", [r["metrics"][m] for r in runs], sign, limit) for m, sign, limit in slos]
    wants.append(("overloaded runs <= half", [float(r["verdict"] == "OVERLOADED") for r in runs], "<=", 0.5))
    miss = []
    for name, v, sign, limit in wants:
        n, mean, sd = moments(v)
        _, low, high = student_interval(v, 1 - 2 * alpha)
        if name == "overloaded runs <= half":  # a share
            low, high = max(low, 0.0), min(high, 1.0)
        over = mean - limit if sign == "<=" else limit - mean
        t_value = abs(over) / (sd / n ** 0.5) if sd > 0 else float("inf")
        above = 0.0 if t_value == float("inf") else student_above(t_value, n - 1)
        miss.append(above if over > 0 else 1 - above)
        for key, want in zip(("mean", "low", "high"), (mean, low, high)):
            x.same(f"search {policy} {t['rate_scale']} {name} {key}", t["slos"][name][key], want, 1e-6)
    want = "missed" if min(miss) <= alpha / len(wants) else "met" if min(miss) >= 1 - alpha else "undecided"
    if t["outcome"] != want:
        x.fail(f"search {policy} at {t['rate_scale']}: {t['outcome']}, worked out {want} ({miss})")


def main():
    x = Program(sys.argv[1], sys.argv[2])
    run(x, "--policy", "agent-xpu-v2", "--workload", WORK, "--seed", "3")
    run(x, "--policy", "edf", "--workload", WORK, "--seed", "4")
    compare(x, "compare", ["compare"], ["--policy", "openvino-cb", "--policy", "agent-xpu-v2", "--policy", "fcfs", "--workload", WORK,
                                        "--replications", "4"])
    compare(x, "compare of 10", ["compare"], ["--policy", "edf", "--policy", "agent-xpu-v2", "--workload", WORK, "--replications", "10"])
    compare(x, "ablate", ["ablate", "agent-xpu-v2"], ["--workload", WORK, "--replications", "2"])
    slos = [("reactive.e2e_s.p90", "<=", 150.0), ("reactive.slo_attainment_frac", ">=", 0.5)]
    targets = ["--ttft-slo", "60", "--tpot-slo", "0.5"]
    search(x, ["--policy", "fcfs", "--policy", "openvino-cb", "--workload", "mixed:reactive_per_min=2,proactive_per_min=2,duration_s=150",
               *targets, "--confidence", "0.6", "--replications", "4", "--precision", "0.5"] +
           [w for s in slos for w in ("--slo", f"{s[0]}{s[1]}{s[2]:g}")], slos,
           lambda f: ["--workload", f"mixed:reactive_per_min={2 * f!r},proactive_per_min={2 * f!r},duration_s=150", *targets])
    more.explain(x, 9, "agent-xpu-v2", WORK, 3)
    more.explain(x, 5, "edf", WORK, 3)
    more.interference(x, "agent-xpu-v2", WORK, 3)
    more.interference(x, "fcfs", "w1:n=2", 1)
    more.sweep(x, ["fcfs", "agent-xpu-v2"], WORK, 2)
    more.gate(x)
    more.claims(x, ["A6", "A8", "B17", "B18"])
    print("\n".join(f"FAILED: {b}" for b in x.bad))
    print(f"{x.checked} numbers worked out again, {len(x.bad)} differ")
    return 1 if x.bad or x.checked < 3000 else 0


if __name__ == "__main__":
    sys.exit(main())
