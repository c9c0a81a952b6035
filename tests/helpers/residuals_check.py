#!/usr/bin/env python3
"""`calibrate --residuals` worked out again: what a row is comes from the table of points, its error from a calibration without its model or
source and a validation with that file, and the printed tables from the rows."""
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
SOCS = {"core-ultra-9-288v": "openvino-2024.5", "core-ultra-7-258v": "openvino-2024.6"}

MODELS = ("tiny-llama-1.1b", "qwen2-0.5b", "red-pajama-3b", "phi-2", "gemma-2b", "stablelm-3b-4e1t", "llama-2-7b")


def said(*words):
    r = subprocess.run([XPUSIM, *map(str, words)], capture_output=True, text=True, stdin=subprocess.DEVNULL, timeout=600)
    if r.returncode != 0:
        sys.exit(f"FAILED: exit {r.returncode}: {' '.join(map(str, words))}\n{r.stderr[:400]}")
    return r.stdout


def same(what, got, want, within=0.0):
    CHECKED[what.split()[0]] += 1
    if got != want and not (isinstance(got, (int, float)) and isinstance(want, (int, float)) and abs(got - want) <= within):
        BAD.append(f"{what}: {str(got)[:160]}, worked out {str(want)[:160]}")


def rows_of(path):
    return list(csv.DictReader(l for l in pathlib.Path(path).read_text().splitlines() if not l.startswith("#")))


def put(name, rows):
    with open(FOLDER / name, "w", newline="") as f:
        w = csv.DictWriter(f, rows[0].keys(), lineterminator="\n")
        w.writeheader()
        w.writerows(rows)
    return FOLDER / name


def phase(p):
    if p["metric"].endswith("_mb") or "memory" in p["metric"]:
        return "memory"
    return "decode" if p["metric"] in ("tpot_ms", "decode_tok_s") else "short_prefill" if int(p["input_tokens"]) < 100 else "prefill"


def key(p):
    return p["soc"], p["runtime"], p["weight_bits"], p["model"], phase(p), p["input_tokens"], p["batch"]


def nearest(v, percent):
    return v[max(0, math.ceil(percent * len(v) / 100 - 1e-9) - 1)]


def where_a_fit_began(path, refused):
    """Entries that the rows do not determine predict from their starting values. In the file the shipped ones stay."""
    soc = json.loads(path.read_text())
    for device in soc["devices"]:
        for entry in device["runtimes"]:
            start = entry.get("fit", {}).get("start", {})
            if (device["name"], entry["runtime"], str(entry["weight_bits"])) in refused:
                for name, value in start.items():
                    if name in entry:
                        entry[name].update(value=value, low=min(value, entry[name]["low"]), high=max(value, entry[name]["high"]))
    path.write_text(json.dumps(soc))


def left_out(points, residuals, soc, what, value, of):
    """Errors of the SoC's rows whose model or source is left out, by calibrate and validate."""
    own = [p for p in points if of(p) == value and p["soc"] == soc]
    others = [p for p in points if of(p) != value]
    out = FOLDER / f"{soc}.json"
    report = said("calibrate", "--points", put("kept.csv", others), "--soc", soc, "-o", out)
    where_a_fit_began(out, re.findall(r"^(\S+), (\S+), (\d+) bits: \d+ points?; not fitted", report, re.M))
    seen = json.loads(said("validate", "--points", put("own.csv", own), "--soc", out, "--rows", "--json"))["rows"]
    want = collections.defaultdict(list)
    for p, row in zip(own, seen):
        if row.get("predicted") is None or phase(p) == "memory":
            continue
        ratio = row["predicted"] / float(p["value"])
        want[key(p)].append(math.log(1 / ratio if p["metric"].endswith("tok_s") else ratio))
    got = collections.defaultdict(list)
    for r in residuals:
        if r["left_out"] == what and r["soc"] == soc and r["phase"] != "memory" and (r["model"] if what == "model" else r["source"]) == value:
            got[r["soc"], r["runtime"], r["weight_bits"], r["model"], r["phase"], r["input_tokens"], r["batch"]].append(float(r["ln_error"]))
    bits = {r["weight_bits"] for r in residuals if r["soc"] == soc and r["left_out"] == "model" and r["phase"] != "memory"}
    same(f"errors {soc} without {value}: rows", sorted(got), sorted(k for k in want if k[2] in bits))
    for k in got:
        for a, b in zip(sorted(got[k]), sorted(want.get(k, []))):
            same(f"errors {soc} without {value}: {k}", a, b, 2e-3)


def tables(text, residuals):
    """Medians and P90 of the printed tables, by nearest ranks."""
    lines = text.split("\n")
    kinds, families = [], {}
    for r in residuals:
        families.setdefault(r["soc"], r["family"])
    at = lines.index("models left out: |error| in %, median and P90") + 2
    model = [r for r in residuals if r["left_out"] == "model"]
    want = []
    for r in model:
        for family in (None, r["family"]):
            if (r["device"], family) not in kinds:
                kinds.append((r["device"], family))
                cells = [r["device"], family or "all"]
                for ph in ("prefill", "short_prefill", "decode"):
                    v = sorted(100 * abs(math.expm1(float(x["ln_error"]))) for x in model if x["device"] == r["device"] and x["phase"] == ph and family in (None, x["family"]) and
                               (ph != "decode" or int(x["input_tokens"]) >= 100))
                    cells += [str(len(v)), nearest(v, 50), nearest(v, 90)] if v else ["-"]
                want.append(cells)
    for i, cells in enumerate(want):
        shown = lines[at + i].split()
        same(f"tables: models left out, {cells[:2]}: cells", len(shown), len(cells))
        for a, b in zip(shown, cells):
            same(f"tables: models left out, {cells[:2]}", a if isinstance(b, str) else float(a), b, 0.0501)
    same("tables: models left out end", lines[at + len(want)], "")
    at = next(i for i, l in enumerate(lines) if l.startswith("a machine made from a sibling")) + 2
    soc = [r for r in residuals if r["left_out"] == "soc"]
    pairs = list(dict.fromkeys((r["device"], r["by"], r["soc"]) for r in soc))
    kin = lambda a, b: families.get(a, "") == families[b]
    chosen = [(d, [(a, b)], [d, a, b, "same" if kin(a, b) else "other"]) for d, a, b in pairs]
    for d in dict.fromkeys(p[0] for p in pairs):
        for name, test in (("all pairs", lambda x: True), ("of one family", lambda x: x), ("of other families", lambda x: not x)):
            own = [(a, b) for k, a, b in pairs if k == d and test(kin(a, b))]
            if any(r["phase"] == "decode" and (r["by"], r["soc"]) in own for r in soc):
                chosen.append((d, own, [d, *name.split()]))
    for i, (d, own, head) in enumerate(chosen):
        cells = list(head)
        for ph in ("prefill", "decode"):
            errors = sorted(math.expm1(float(r["ln_error"])) for r in soc if r["device"] == d and (r["by"], r["soc"]) in own and r["phase"] == ph)
            v = sorted(abs(e) for e in errors)
            cells += [str(len(v)), 100 * nearest(v, 50), 100 * nearest(v, 90), 100 * nearest(errors, 50)] if v else ["-"]
        shown = lines[at + i].split()
        same(f"tables: siblings, {head}: cells", len(shown), len(cells))
        for a, b in zip(shown, cells):
            same(f"tables: siblings, {head}", a if isinstance(b, str) else float(a), b, 0.501)
    same("tables: siblings end", [l for l in lines[at + len(chosen):] if l], [])


def coverage(text, residuals):
    """Counts of the first table: rows by what was left out and by phase; a line for those that there are."""
    shown = re.findall(r"^  (models|SoCs) left out, (\w+): ([\d.]+) % of (\d+) rows", text, re.M)
    want = []
    for what, name in (("model", "models"), ("soc", "SoCs")):
        phases = collections.Counter(r["phase"] for r in residuals if r["left_out"] == what and r["phase"] != "memory")
        want += [(name, ph, phases[ph]) for ph in ("prefill", "short_prefill", "decode") if phases[ph]]
        want += [(name, "all", sum(phases.values()))] if phases else []
        if not phases and f"  {name} left out: no rows\n" not in text:
            BAD.append(f"coverage: nothing of {name}")
    same("coverage: rows", [(a, b, int(n)) for a, b, _, n in shown], want)
    for name in {a for a, *_ in want}:
        own = [(float(p), int(n)) for a, b, p, n in shown if a == name and b != "all"]
        total = next(float(p) for a, b, p, n in shown if a == name and b == "all")
        inside = sum(round(p * n / 100) for p, n in own)
        same(f"coverage: {name}", total, 100 * inside / sum(n for _, n in own), 0.0501)


def main():
    points = [p for p in rows_of("hwmodels/points/reference.csv") if SOCS.get(p["soc"]) == p["runtime"] and p["device"] == "igpu"]
    points = [p for p in points if p["model"] in MODELS]
    out = FOLDER / "residuals.csv"
    text = said("calibrate", "--points", put("points.csv", points), "--residuals", out)
    residuals = rows_of(out)
    same("tables: rows", text.split("\n")[0], f"{out}: {len(residuals)} rows")
    by_key = collections.defaultdict(list)
    for p in points:
        by_key[key(p)].append(p)
    counts = collections.Counter((r["left_out"], r["soc"]) for r in residuals if r["phase"] != "memory")
    weights_of = {}
    for r in residuals:
        p = by_key.get((r["soc"], r["runtime"], r["weight_bits"], r["model"], r["phase"], r["input_tokens"], r["batch"]))
        if not p:
            BAD.append(f"rows: no point is of {r}")
            continue
        # A source without its revision and remark, where the row says what is known of its machine.
        sources = {x["source"].split(" @")[0].split(" (")[0] for x in p} if r["left_out"] == "model" else {""}
        same("rows: device, source", (r["device"], r["source"] in sources), ("igpu", True))
        weights = weights_of.setdefault(r["model"], r["weights"])
        same("rows: weights", r["weights"], weights)
        if (r["left_out"] == "soc") != (r["by"] != r["soc"]):
            BAD.append(f"rows: {r['left_out']} by {r['by']} of {r['soc']}")
    # Every row of a fitted entry counts once for its model, and for its SoC once for a sibling's entry of the toolchain's year and width.
    fitted = {(r["soc"], r["weight_bits"]) for r in residuals if r["left_out"] == "model" and r["phase"] != "memory"}
    for soc in SOCS:
        of = collections.Counter(p["weight_bits"] for p in points if p["soc"] == soc and phase(p) != "memory")
        same(f"rows: {soc}, model", counts["model", soc], sum(n for b, n in of.items() if (soc, b) in fitted))
        same(f"rows: {soc}, soc", counts["soc", soc], sum(n for b, n in of.items() if (soc, b) in fitted and any((s, b) in fitted for s in SOCS if s != soc)))
    for soc, model in (("core-ultra-9-288v", "phi-2"), ("core-ultra-9-288v", "gemma-2b")):
        if any(p["soc"] == soc and p["model"] == model for p in points):
            left_out(points, residuals, soc, "model", model, lambda p: p["model"])
    tables(text, residuals)
    coverage(text, residuals)
    alone = put("alone.csv", [p for p in points if p["soc"] == "core-ultra-9-288v"])
    coverage(said("calibrate", "--points", alone, "--residuals", out), rows_of(out))
    print("\n".join(f"FAILED: {b[:300]}" for b in BAD[:12]))
    print("worked out again: " + ", ".join(f"{n} of {k}" for k, n in CHECKED.items()))
    return 1 if BAD or sum(CHECKED.values()) < 250 else 0


sys.exit(main())
