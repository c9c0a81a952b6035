#!/usr/bin/env python3
"""The tables of `validate` are worked out again: rows from the measured file, summaries and intervals from the rows, errors of a
served run from a run of the same requests. Nothing is copied from what is checked but each row's own prediction."""
import collections
import csv
import json
import math
import pathlib
import statistics
import subprocess
import sys

from printed import nearest_rank, student_quantile

XPUSIM, FOLDER = sys.argv[1], pathlib.Path(sys.argv[2])
BAD = []
CHECKED = 0
RATES = ("prefill_tok_s", "decode_tok_s")
LATENCY = RATES + ("ttft_ms", "tpot_ms")


def said(*words):
    r = subprocess.run([XPUSIM, *words], capture_output=True, text=True, stdin=subprocess.DEVNULL, timeout=600)
    if r.returncode != 0:
        sys.exit(f"FAILED: exit {r.returncode}: {' '.join(words)}\n{r.stderr[:400]}")
    return r.stdout


def same(what, got, want, within=1e-9):
    global CHECKED
    CHECKED += 1
    if (got is None) != (want is None) or (isinstance(want, str) and got != want) or \
            (isinstance(want, (int, float)) and abs(got - want) > within * max(1e-9, abs(want))):
        BAD.append(f"{what}: {got}, worked out {want}")


def table(path):
    """Rows of a CSV with their lines, which count remarks, too."""
    lines = pathlib.Path(path).read_text().split("\n")
    first = next(k for k, l in enumerate(lines) if not l.startswith("#"))
    rows = csv.DictReader(lines[first:])
    return [(first + rows.line_num, r) for r in rows]


def median(v):
    return nearest_rank(v, 50) if v else None


# ---- points

def prompt(tokens):
    return "not stated" if tokens == 0 else "1 to 64 tokens" if tokens <= 64 else "65 to 1500 tokens" if tokens <= 1500 else "over 1500 tokens"


def parameters(r):
    return "not predicted" if "predicted" not in r else "another runtime's" if r["default_runtime"] else "the runtime's own"


def group(name, rows, got):
    """What a summary says of its rows."""
    known = [r for r in rows if r.get("predicted") is not None]
    error = [abs(r["predicted"] / r["measured"] - 1) for r in known]
    slower = [math.log(r["measured"] / r["predicted"] if r["metric"] in RATES else r["predicted"] / r["measured"]) for r in known]
    every = error + [1.0] * (len(rows) - len(known))
    latency = rows[0]["metric"] in LATENCY
    with_interval = [r for r in known if latency and r.get("low") is not None]
    inside = sum(r["low"] <= r["measured"] <= r["high"] for r in with_interval)
    one = len({r["metric"] for r in known}) == 1
    varies = len({r["predicted"] for r in known}) > 1 and len({r["measured"] for r in known}) > 1
    want = {"n": len(rows), "predicted": len(known), "median": median(error), "p90": nearest_rank(error, 90) if error else None,
            "bias": math.expm1(statistics.fmean(slower)) if known else None, "median_with_unpredicted": median(every),
            "p90_with_unpredicted": nearest_rank(every, 90), "inside_interval": inside / len(with_interval) if with_interval else None}
    if not one or varies:
        want["pearson"] = statistics.correlation([r["predicted"] for r in known], [r["measured"] for r in known]) if one and len(known) > 1 else None
    for key, value in want.items():
        same(f"{name}: {key}", got[key], value, 1e-6)


def points(path):
    d = json.loads(said("validate", "--points", path, "--rows", "--json"))
    rows = table(path)
    same("points: rows", len(d["rows"]), len(rows))
    for got, (line, r) in zip(d["rows"], rows):
        for key in ("soc", "device", "runtime", "model", "metric"):
            same(f"points, line {line}: {key}", got[key], r[key])
        same(f"points, line {line}: line", got["line"], line)
        for key in ("weight_bits", "act_bits", "input_tokens", "batch"):
            same(f"points, line {line}: {key}", got[key], float(r[key] or 0))
        same(f"points, line {line}: measured", got["measured"], float(r["value"]))
        if got.get("predicted") is None:
            if not got.get("reason"):
                BAD.append(f"points, line {line}: neither predicted nor a reason")
            continue
        same(f"points, line {line}: error", got["error_frac"], got["predicted"] / got["measured"] - 1)
        if got.get("low") is not None and not got["low"] < got["predicted"] < got["high"]:
            BAD.append(f"points, line {line}: predicted {got['predicted']} is not between {got['low']} and {got['high']}")
    latency = [r for r in d["rows"] if r["metric"] in LATENCY]
    other = [r for r in d["rows"] if r["metric"] not in LATENCY]
    keys = {"all": lambda r: "latency rows", "soc": lambda r: r["soc"], "device": lambda r: r["device"], "metric": lambda r: r["metric"],
            "prompt": lambda r: prompt(r["input_tokens"]), "parameters": parameters, "model": lambda r: r["model"], "other": lambda r: r["metric"]}
    want = []
    for by, key in keys.items():
        groups = collections.defaultdict(list)
        for r in other if by == "other" else latency:
            groups[key(r)].append(r)
        want += [(by, name, groups[name]) for name in sorted(groups, key=str.encode)]
    same("points: groups", [(s["by"], s["group"]) for s in d["summary"]] == [w[:2] for w in want], True)
    for s, (by, name, members) in zip(d["summary"], want):
        group(f"points by {by}, {name}", members, s)
    # the text has the numbers of the document, in percent
    text = [l.split() for l in said("validate", "--points", path).split("\n")]
    for s in d["summary"]:
        cells = [str(s["n"]), str(s["predicted"])]
        for key, scale, digits in (("median", 100, 1), ("p90", 100, 1), ("bias", 100, 1), ("pearson", 1, 3), ("median_with_unpredicted", 100, 1),
                                   ("p90_with_unpredicted", 100, 1), ("inside_interval", 100, 1)):
            cells += [f"{scale * s[key]:.{digits}f}"] if s[key] is not None else []
        want = s["group"].split() + cells
        same(f"points by {s['by']}, {s['group']}: its line of the text", want in text, True)
    # a limit fails exactly where the number over rows with unpredicted ones is above it, and says so
    for option, key, name in (("--max-median", "median_with_unpredicted", "median"), ("--max-p90", "p90_with_unpredicted", "P90")):
        most = 100 * d["summary"][0][key]
        nearest = most * (1 + 4 * sys.float_info.epsilon)  # cJSON prints 15 digits of a number that is as near to them as two of these
        for limit, status in ((nearest, 0), (most * (1 + 1e-9), 0), (most * (1 - 1e-9), 1)):
            r = subprocess.run([XPUSIM, "validate", "--points", path, option, repr(limit), "-q"], capture_output=True, text=True)
            same(f"{option} {limit!r}: exit", r.returncode, status)
            said_so = f"{name} error {most:.2f} % is above {limit:.4g} %\n"
            same(f"{option} {limit!r}: message", said_so in r.stderr, status == 1)


# ---- powers

def source(text):
    """A publication: its name before its revision and remark."""
    return min((text.split(mark)[0] for mark in (" (", " @")), key=len)


def was_read(rows, own, group_of):
    """Has another publication readings of the device of this machine at this meter?"""
    def what(r):
        return (r["soc"], r["device"], r["meter"])
    return any(what(r) == what(own) and group_of(r) != group_of(own) for r in rows if r.get("predicted") is not None)


def half(rows, own, group_of):
    """Half of the interval of ln watts: Student's, of other groups' mean squares, of rows that were read or not, as it was."""
    squares = collections.defaultdict(list)
    for r in rows:
        if r.get("predicted") is not None and group_of(r) != group_of(own) and was_read(rows, r, group_of) == was_read(rows, own, group_of):
            squares[group_of(r)].append(math.log(r["predicted"] / r["watts"]) ** 2)
    if len(squares) < 2:
        return None
    mean = statistics.fmean(statistics.fmean(v) for v in squares.values())
    return student_quantile(0.975, len(squares) - 1) * math.sqrt(mean)


def powers(path):
    d = json.loads(said("validate", "--energy", path, "--rows", "--json"))
    rows = table(path)
    same("powers: rows", len(d["rows"]), len(rows))
    for got, (line, r) in zip(d["rows"], rows):
        for key in ("soc", "device", "runtime", "model", "phase", "meter", "source"):
            same(f"powers, line {line}: {key}", got[key], r[key])
        same(f"powers, line {line}: line", got["line"], line)
        same(f"powers, line {line}: watts", got["watts"], float(r["watts"]))
        same(f"powers, line {line}: joules", got["joules"], float(r["watts"]) / float(r["tok_s"]))
        if got.get("predicted") is None:
            continue
        same(f"powers, line {line}: error", got["error_frac"], got["predicted"] / got["watts"] - 1)
        wide = half(d["rows"], got, lambda q: (source(q["source"]), q["soc"]))
        if wide is not None:
            same(f"powers, line {line}: low", got["low"], got["predicted"] * math.exp(-wide), 1e-6)
            same(f"powers, line {line}: high", got["high"], got["predicted"] * math.exp(wide), 1e-6)
    known = [r for r in d["rows"] if r.get("predicted") is not None]
    for e in (e for e in d["errors"] if e["quantity"].startswith("W") and e["left_out"] == "source"):
        of = [r for r in known if e["meter"] in ("all", r["meter"])]
        error = [abs(r["error_frac"]) for r in of]
        halves = [math.log(r["high"] / r["predicted"]) for r in of if r.get("high") is not None]
        inside = sum(r["low"] <= r["watts"] <= r["high"] for r in of if r.get("high") is not None)
        for key, want in (("rows", len(of)), ("median_frac", median(error)), ("p90_frac", nearest_rank(error, 90)), ("inside_frac", inside / len(halves)),
                          ("factor", math.exp(median(halves)))):
            same(f"powers, {e['meter']}: {key}", e[key], want, 1e-6)
    for e in (e for e in d["errors"] if e["quantity"].startswith("J") and e["left_out"] == "source"):
        error = [abs(r["joules_frac"]) for r in known if r.get("joules_frac") is not None and e["meter"] in ("all", r["meter"])]
        for key, want in (("rows", len(error)), ("median_frac", median(error)), ("p90_frac", nearest_rank(error, 90))):
            same(f"powers, {e['meter']}, joules: {key}", e[key], want, 1e-6)

    # of a machine, under one runtime: how many readings its factor rests on
    of = [(r["soc"], r["meter"], r["device"], r["runtime"]) for r in d["rows"] if not r.get("reason")]
    same("powers: factors", [(f["soc"], f["meter"], f["device"], f["runtime"], f["rows"]) for f in d["factors"]],
         [(*group, of.count(group)) for group in dict.fromkeys(of)])

    def case(r):
        return (r["soc"], r["device"], r["model"], r["weight_bits"], r["meter"], r["phase"] == "prefill", r["runtime"].replace(".", "-").split("-")[0])
    twice = [(a, b) for k, (_, a) in enumerate(rows) for _, b in rows[k + 1:] if case(a) == case(b)]
    same("powers: read twice", len(d["pairs"]), len(twice))
    for got, (a, b) in zip(d["pairs"], twice):
        x, y = float(a["watts"]), float(b["watts"])
        for key, want in (("watts", x), ("again", y), ("factor", max(x, y) / min(x, y)), ("soc", a["soc"]), ("device", a["device"]), ("model", a["model"])):
            same(f"powers read twice, {a['soc']}: {key}", got[key], want)
    # Each number of a meter lies between what it is without each source of that meter.
    text = pathlib.Path(path).read_text().splitlines(keepends=True)
    without = {}
    for publication in dict.fromkeys(r["source"] for _, r in rows):
        part = FOLDER / "part.csv"
        gone = {line for line, r in rows if r["source"] == publication}
        part.write_text("".join(t for i, t in enumerate(text, 1) if i not in gone))
        without[publication] = {(n["meter"], n["number"]): n["value"] for n in json.loads(said("validate", "--energy", str(part), "--json"))["numbers"]}
    for n in d["numbers"]:
        of = {r["source"] for _, r in rows if r["meter"] == n["meter"]}
        values = [without[publication].get((n["meter"], n["number"])) for publication in of]
        values = [v for v in values if v is not None]
        if len(of) > 1 and values and len(values) == len(of):
            same(f"powers, {n['meter']}: {n['number']}, low", n["low"], min(values), 1e-6)
            same(f"powers, {n['meter']}: {n['number']}, high", n["high"], max(values), 1e-6)
    kinds = collections.Counter((r["meter"], r["device"]) for r in known)
    for n in d["numbers"]:
        if n["number"] in ("npu", "igpu", "gpu", "cpu"):
            same(f"powers, {n['meter']}: rows of {n['number']}", n["rows"], kinds[n["meter"], n["number"]])
        else:
            same(f"powers, {n['meter']}: rows", n["rows"], sum(v for (m, _), v in kinds.items() if m == n["meter"]))


def powers_apart(path):
    """A publication as a table of its own is predicted as without it, and its low and high are those of errors of the rest."""
    head = [line for line in pathlib.Path(path).read_text().splitlines(keepends=True)]
    rows = json.loads(said("validate", "--energy", path, "--json"))["rows"]
    publications = collections.defaultdict(dict)
    for r in rows:
        publications[source(r["source"]), r["soc"]][r["line"]] = r
    first = min(r["line"] for r in rows)
    for name, own in sorted(publications.items(), key=lambda p: -len(p[1]))[:5]:
        rest, apart = FOLDER / "rest.csv", FOLDER / "apart.csv"
        rest.write_text("".join(t for i, t in enumerate(head, 1) if i not in own))
        apart.write_text("".join(t for i, t in enumerate(head, 1) if i < first or i in own))
        d = json.loads(said("validate", "--energy", str(rest), "--unseen", str(apart), "--json"))
        known = json.loads(said("validate", "--energy", str(rest), "--json"))["rows"]
        same(f"{name} apart: rows", len(d["rows"]), len(own))
        for got, want in zip(d["rows"], own.values()):
            for key in ("soc", "runtime", "model", "phase", "watts", "predicted", "error_frac", "joules_frac"):
                same(f"{name} apart: {key}", got.get(key), want.get(key), 1e-9)
            def group(q):
                return source(q["source"]), q["soc"]
            wide = half(known, got, group) if got.get("predicted") is not None else None
            if wide is not None:
                same(f"{name} apart: low", got["low"], got["predicted"] * math.exp(-wide), 1e-6)
        error = [abs(r["error_frac"]) for r in d["rows"] if r.get("predicted") is not None]
        e = next((e for e in d["errors"] if e["quantity"].startswith("W") and e["meter"] == "all"), None)
        for key, want in (("rows", len(error)), ("median_frac", median(error)), ("p90_frac", nearest_rank(error, 90))) if e else ():
            same(f"{name} apart: {key}", e[key], want, 1e-6)
        inside = [r["low"] <= r["watts"] <= r["high"] for r in d["rows"] if r.get("low") is not None]
        if inside:
            same(f"{name} apart: inside", e["inside_frac"], sum(inside) / len(inside), 1e-9)


def energies():
    """Joules per token are a device's watts, and those of the idle machine but on a rail, times the predicted time of a token."""
    head = next(l for l in pathlib.Path("hwmodels/points/reference.csv").read_text().split("\n") if l.startswith("soc,"))
    cases = [("snapdragon-8gen3", "npu", "qnn", "bitnet-2b", 4, 16), ("core-ultra-5-125h", "igpu", "openvino-2025.0", "llama-3.2-3b", 4, 16),
             ("ryzen-ai-xdna2", "npu", "fastflowlm-0.9.30", "llama-3.2-1b", 4, 16), ("core-ultra-7-258v", "igpu", "openvino-2025.4", "llama-3.1-8b", 4, 16)]
    lines = [head]
    for case in cases:
        for batch in (1, 4):
            for phase, metric in (("prefill", "ttft_ms"), ("decode", "tpot_ms")):
                where = ",".join(map(str, case[4:])) + f",1024,{batch}"
                lines += [",".join(case[:4]) + f",{where},{metric},9,t", ",".join(case[:3]) + f",{case[3]} {phase} per token,{where},energy_j,9,t"]
    path = FOLDER / "energies.csv"
    path.write_text("\n".join(lines) + "\n")
    rows = json.loads(said("validate", "--points", str(path), "--rows", "--json"))["rows"]
    for time, energy in zip(rows[::2], rows[1::2]):
        soc = json.loads(pathlib.Path(f"hwmodels/soc/{time['soc']}.json").read_text())
        device = next(d for d in soc["devices"] if d["name"] == time["device"])
        prefill = time["metric"] == "ttft_ms"
        watts = device["prefill_power" if prefill else "decode_power"]["value"] + (0 if device.get("meter") == "rail" else soc["idle_power"]["value"])
        tokens = time["batch"] * (time["input_tokens"] if prefill else 1)
        for key in ("predicted", "low", "high"):
            name = f"energy of {energy['model']} on {time['soc']}, {time['batch']} sequences: {key}"
            same(name, energy.get(key), watts * time[key] / 1e3 / tokens if time.get(key) is not None else None, 1e-6)


# ---- co-runs

def coruns(path, model):
    d = json.loads(said("validate", "--corun", path, "--set", f"sim.contention={model}", "--json"))
    rows = table(path)
    same("co-runs: rows", len(d["rows"]), len(rows))
    errors = collections.defaultdict(list)
    for got, (line, r) in zip(d["rows"], rows):
        for key in ("machine", "what", "victim", "demands", "source"):
            same(f"co-runs, line {line}: {key}", got[key], r[key])
        same(f"co-runs, line {line}: measured", got["measured"], float(r["slowdown"]))
        same(f"co-runs, line {line}: error", got["error_frac"], got["predicted"] / got["measured"] - 1)
        errors[got["machine"]].append(abs(math.log(got["predicted"] / got["measured"])))
    by = {e["machine"]: e for e in d["errors"]}
    for machine, v in errors.items():
        same(f"co-runs, {machine}: rows", by[machine]["rows"], len(v))
        same(f"co-runs, {machine}: error", by[machine]["error_frac"], statistics.fmean(v), 1e-6)
    whole = by["all, fit of all"]
    same("co-runs: rows in all", whole["rows"], len(rows))
    for key in ("error_frac", "error_fitted_frac"):  # each machine counts the same
        same(f"co-runs: {key} in all", whole[key], statistics.fmean(by[m][key] for m in errors), 1e-6)


# ---- a served run

def served(path, n):
    lines = pathlib.Path(path).read_text().split("\n")
    first = next(k for k, l in enumerate(lines) if not l.startswith("#"))
    short = FOLDER / "served.csv"
    short.write_text("\n".join(lines[:first + 1 + n]) + "\n")
    machine = ["--soc", "rtx-4090", "--llm", "llama-3.1-8b-bf16", "--policy", "vllm-v1"]
    d = json.loads(said("validate", "--run", str(short), *machine, "--json"))
    real = [{k: float(v) for k, v in r.items()} for _, r in table(short)]
    trace, requests = FOLDER / "served-trace.csv", FOLDER / "requests.csv"
    head = "request_id,session_id,turn,class,arrival_s,gap_s,input_tokens,output_tokens,prefix_tokens"
    trace.write_text("\n".join(["# xpusim-trace v1", head] + [f"{k},{k},0,reactive,{r['arrival_s']:.9f},,{r['input_tokens']:.0f},{r['output_tokens']:.0f},0"
                                                            for k, r in enumerate(real)]) + "\n")
    said("run", *machine, "--trace", str(trace), "--requests", str(requests), "-q")
    done = {int(r["request_id"]): {k: float(r[k]) for k in ("arrival_s", "first_token_s", "finish_s")} for _, r in table(requests)}
    errors = collections.defaultdict(list)
    for k, r in enumerate(real):
        s = done[k]
        ttft, e2e = s["first_token_s"] - s["arrival_s"], s["finish_s"] - s["arrival_s"]
        errors["ttft"].append(ttft / r["ttft_s"] - 1)
        errors["e2e"].append(e2e / r["e2e_s"] - 1)
        if r["output_tokens"] > 1:
            errors["tpot"].append((e2e - ttft) / (r["e2e_s"] - r["ttft_s"]) - 1)
    for part in (d, d["parts"]["all"]):
        same("served: n", part["n"], n)
        for name, v in errors.items():
            size = [abs(x) for x in v]
            for key, want in (("mape", statistics.fmean(size)), ("median", median(size)), ("p90", nearest_rank(size, 90)), ("bias", statistics.fmean(v))):
                same(f"served: {name}_{key}", part[f"{name}_{key}"], want, 1e-5)
        same("served: pearson", part["e2e_pearson"], statistics.correlation([r["e2e_s"] for r in real], [done[k]["finish_s"] - done[k]["arrival_s"] for k in range(n)]), 1e-5)
    for i in d["intervals"]:
        key = {"E2E": "e2e", "TTFT": "ttft", "TPOT": "tpot"}[i["metric"]]
        measured = [r["ttft_s"] if key == "ttft" else r["e2e_s"] if key == "e2e" else (r["e2e_s"] - r["ttft_s"]) / (r["output_tokens"] - 1)
                    for r in real if key != "tpot" or r["output_tokens"] > 1]
        same(f"interval of {key}: requests", i["requests"], len(measured))
        same(f"interval of {key}: measured", i["measured_s"], statistics.fmean(measured), 1e-5)
        same(f"interval of {key}: contains", i["contains"], "yes" if i["low_s"] <= i["measured_s"] <= i["high_s"] else "NO")


def main():
    points("hwmodels/points/reference.csv")
    powers("hwmodels/points/energy.csv")
    powers_apart("hwmodels/points/energy.csv")
    energies()
    coruns("hwmodels/points/corun.csv", "latency")
    served("hwmodels/runs/vllm-rtx-4090-llama-3.1-8b.csv", 12)
    print("\n".join(f"FAILED: {b}" for b in BAD[:40]))
    print(f"{CHECKED} numbers and names worked out again")
    return 1 if BAD or CHECKED < 15000 else 0


if __name__ == "__main__":
    sys.exit(main())
