#!/usr/bin/env python3
"""Tables that commands make of files and prices are worked out again: `list` from the shipped files, `characterize` from formulas
and from itself, `compare --tune` from runs by themselves."""
import collections
import csv
import io
import json
import math
import pathlib
import re
import statistics
import subprocess
import sys

from printed import moments
from printed_check import reported

XPUSIM, FOLDER = sys.argv[1], pathlib.Path(sys.argv[2])
BAD = []
CHECKED = collections.Counter()


def said(*words):
    r = subprocess.run([XPUSIM, *words], capture_output=True, text=True, stdin=subprocess.DEVNULL, timeout=600)
    if r.returncode not in (0, 1):
        sys.exit(f"FAILED: exit {r.returncode}: {' '.join(words)}\n{r.stderr[:400]}")
    return r.stdout


def document(*words):
    return json.loads(said(*words, "--json"))


def same(what, got, want, within=1e-9):
    CHECKED[what.split()[0]] += 1
    alike = got == want if isinstance(want, str) or got is None or want is None else abs(got - want) <= within * max(1e-12, abs(want))
    if not alike:
        BAD.append(f"{what}: {got}, worked out {want}")


def rows_of(path):
    return list(csv.DictReader(l for l in pathlib.Path(path).read_text().splitlines() if not l.startswith("#")))


# ---- list

def leaves(x, path):
    """Every number of a file: path -> the number, or what it is with its unit."""
    if isinstance(x, dict) and "value" in x and "unit" in x:
        yield path, x
    elif isinstance(x, dict):
        for k, v in x.items():
            if k not in ("fit", "format"):
                yield from leaves(v, f"{path}.{k}")
    elif isinstance(x, list):
        names = [v.get("name") if isinstance(v, dict) else None for v in x]
        kept = [f"{v['runtime']}/{v['weight_bits']}" if isinstance(v, dict) and "runtime" in v and "weight_bits" in v else n for v, n in zip(x, names)]
        for i, v in enumerate(x):
            yield from leaves(v, f"{path}.{kept[i] if kept[i] and kept.count(kept[i]) == 1 else i}")
    elif isinstance(x, (int, float)) and not isinstance(x, bool):
        yield path, x


def quantities(x, path):
    """Numbers of a file in its order: a quantity with all that it says, a plain number alone. Members of lists go by name, by runtime
    and width, or by their place."""
    for i, (key, v) in enumerate(x.items() if isinstance(x, dict) else ((None, v) for v in x)):
        label = key
        if key is None and isinstance(v, dict):
            label = v["name"] if isinstance(v.get("name"), str) else f"{v['runtime']}/{v['weight_bits']:g}" if isinstance(v.get("runtime"), str) and "weight_bits" in v else None
        below = f"{path}.{i if label is None else label}"
        if isinstance(v, dict) and "value" in v and "unit" in v:
            yield [below, v["value"], v["unit"], v.get("low"), v.get("high"), v.get("kind", ""), v.get("source", "")]
        elif key in ("fit", "format"):
            continue
        elif isinstance(v, (int, float)) and not isinstance(v, bool):
            yield [below, v, "", None, None, "", ""]
        elif isinstance(v, (dict, list)):
            yield from quantities(v, below)


def numbers_listed():
    """`list soc NAME` has each number of the file, in its order."""
    for path in sorted(pathlib.Path("hwmodels/soc").glob("*.json"))[::5]:
        got = [[r[k] for k in ("path", "value", "unit", "low", "high", "kind", "source")] for r in document("list", "soc", path.stem)]
        want = list(quantities(json.loads(path.read_text()), "soc"))
        same(f"list soc {path.stem}: how many numbers", len(got), len(want))
        for g, w in zip(got, want):
            for k, (a, b) in enumerate(zip(g, w)):
                same(f"list soc {path.stem}: {w[0]}, cell {k}", a, b)


def letters(name):
    """Tables and files spell a machine with other hyphens (snapdragon-8-elite)."""
    return re.sub("[^a-z0-9]", "", name.lower())


def listed():
    for kind in ("soc", "llm"):
        names = [d["name"] for d in document("list", kind)]
        same(f"list {kind}: names", ",".join(names), ",".join(p[:-5] for p in sorted(p.name for p in pathlib.Path(f"hwmodels/{kind}").glob("*.json"))))
    tables = [[l for l in p.read_text().splitlines() if not l.startswith("#")] for p in pathlib.Path("hwmodels/points").glob("*.csv")]
    measured = [letters(r["soc"]) for t in tables for r in csv.DictReader(t) if "metric" in r]
    for d in document("list", "soc"):
        tree, name = json.loads(pathlib.Path(f"hwmodels/soc/{d['name']}.json").read_text()), d["name"]
        same(f"list soc {name}: DDR", d["ddr_gb_per_s"], tree["ddr"]["peak"]["value"])
        same(f"list soc {name}: memory", d["memory_gb"], tree["memory"]["capacity"]["value"])
        same(f"list soc {name}: measured rows", d["measured_rows"], measured.count(letters(name)))
        same(f"list soc {name}: devices", d["devices"], ", ".join(f"{v['name']} {v['peak']['value']:.3g}" for v in tree["devices"]))
        same(f"list soc {name}: note", d["description"], tree.get("note", ""))
    for d in document("list", "llm"):
        tree, name = json.loads(pathlib.Path(f"hwmodels/llm/{d['name']}.json").read_text()), d["name"]
        for key, of in (("layers", "layers"), ("hidden", "hidden"), ("weight_bits", "weight_bits")):
            same(f"list llm {name}: {key}", d[key], tree[of])
        attend = tree["layers"] - tree.get("recurrent_layers", 0)
        all_see = attend - tree.get("sliding_layers", 0) if "global_head_dim" in tree else 0
        kept = 2 * (attend - all_see) * tree["kv_heads"] * tree["head_dim"] + 2 * all_see * tree.get("global_kv_heads", 0) * tree.get("global_head_dim", 0)
        if "latent_kv" in tree:
            kept = attend * (tree["latent_kv"] + tree["rotary_dim"])
        kept *= 1 - tree.get("shared_kv_layers", 0) / tree["layers"]  # they read the keys of earlier layers
        same(f"list llm {name}: KV", d["kv_kb_per_token"], kept * tree["kv_bytes_per_element"]["value"] / 1e3)
    for d in document("list", "dataset"):
        rows = [r for r in rows_of(f"traces/datasets/{d['name']}.csv")]
        same(f"list dataset {d['name']}: rows", d["rows"], len(rows))
        if "input_tokens" in rows[0]:
            for key in ("input_tokens", "output_tokens"):
                same(f"list dataset {d['name']}: {key}", d[key + "_mean"], statistics.fmean(float(r[key]) for r in rows), 1e-6)
    for kind, name in (("soc", "core-ultra-5-125h"), ("soc", "snapdragon-8gen3"), ("llm", "qwen3-30b-a3b")):
        tree = json.loads(pathlib.Path(f"hwmodels/{kind}/{name}.json").read_text())
        got = {r["path"]: r for r in document("list", kind, name)}
        want = dict(leaves(tree, kind))
        missing, more = sorted(set(want) - set(got)), sorted(set(got) - set(want))
        if missing or more:
            BAD.append(f"list {kind} {name}: without {missing[:4]}, with {more[:4]}")
        for path in set(want) & set(got):
            q = want[path] if isinstance(want[path], dict) else {"value": want[path]}
            same(f"list {kind} {name} {path}", got[path]["value"], q["value"])
            for key in ("unit", "kind", "source"):
                same(f"list {kind} {name} {path} {key}", got[path][key], q.get(key, ""))
            for key in ("low", "high"):
                same(f"list {kind} {name} {path} {key}", got[path][key], q.get(key))


def kernels():
    """Work of a dense model's operators by their shapes; the projection behind attention is a part of FFN."""
    m = json.loads(pathlib.Path("hwmodels/llm/llama-3.2-3b.json").read_text())
    h, kv, wide, vocab, ffn = m["hidden"], m["kv_heads"] * m["head_dim"], m["heads"] * m["head_dim"], m["vocab"], m["ffn_hidden"]
    tree = document("list", "kernels", "--soc", "core-ultra-5-125h", "--llm", "llama-3.2-3b")
    soc = json.loads(pathlib.Path("hwmodels/soc/core-ultra-5-125h.json").read_text())
    devices = [d["name"] for d in soc["devices"]]
    prompts = sorted({r["prompt_tokens"] for r in tree["longest"]})
    same("kernels longest: rows", " ".join(f"{r['device']} {r['prompt_tokens']}" for r in tree["longest"]), " ".join(f"{d} {p}" for d in devices for p in prompts))
    alone = {(k["device"], k["op"], k["work"]): k for k in tree["kernels"]}
    for r in tree["longest"]:
        name = f"kernels longest {r['device']} {r['prompt_tokens']}"
        same(name, r["longest_ms"], max(r["chunk_ms"], r["mha_ms"]))
        if r["mha_uncut_ms"] < r["mha_ms"] - 1e-9 or r["mha_ms"] <= 0 or r["chunk_ms"] <= 0:
            BAD.append(f"{name}: {r}")
        k = alone.get((r["device"], "MHA", f"prefill {r['prompt_tokens']}"))
        if k and k["kernels"] == 1:
            same(name + ": alone", r["mha_ms"], 1e3 * k["time_s"], 1e-6)
    same("kernels roofs: devices", " ".join(r["device"] for r in tree["roofs"]), " ".join(devices))
    for r, d in zip(tree["roofs"], soc["devices"]):
        own = next(t for t in d["runtimes"] if t["runtime"] == r["runtime"])
        same(f"kernels roofs {r['device']}: rate", r["flop_per_s"], own["rate"]["value"] * {"TFLOP/s": 1e12, "GFLOP/s": 1e9}[own["rate"]["unit"]])
        same(f"kernels roofs {r['device']}: bandwidth", r["bytes_per_s"], own["bandwidth"]["value"] * {"GB/s": 1e9}[own["bandwidth"]["unit"]])
    for k in tree["kernels"]:
        name = f"kernels {k['device']} {k['op']} {k['work']}"
        if k["bytes_per_s"] > 0:
            same(name, k["flop_per_byte"], k["flop_per_s"] / k["bytes_per_s"])
        same(name + ": bytes", k["memory_bytes"], k["bytes_per_s"] * k["time_s"], 1e-6)
        rows = int(re.search(r"(?:prefill|decode) (\d+)", k["work"]).group(1))
        work = {"QKV": 2 * rows * h * (wide + 2 * kv), "FFN": 2 * rows * h * (3 * ffn + wide), "HEAD": 2 * vocab * h * (1 if "prefill" in k["work"] else rows)}
        if k["op"] in work and k["kernels"] == 1:
            same(name + ": flop", k["flop_per_s"] * k["time_s"], work[k["op"]], 1e-6)


# ---- characterize

def study(name, *more):
    rows = csv.DictReader(l for l in io.StringIO(said("characterize", name, "--csv", *more)) if not l.startswith("#"))
    return {(r["device"], r["what"], float(r["x"]), r["metric"]): float(r["value"]) for r in rows}


def shared(a, b, cap):
    """Max-min shares of two demands."""
    if a + b <= cap:
        return a, b
    if min(a, b) <= cap / 2:
        return (a, cap - a) if a < b else (cap - b, b)
    return cap / 2, cap / 2


def characterised():
    soc = json.loads(pathlib.Path("hwmodels/soc/core-ultra-5-125h.json").read_text())
    layers = json.loads(pathlib.Path("hwmodels/llm/llama-3.2-3b.json").read_text())["layers"]
    watts = {d["name"]: (d["decode_power"]["value"], d["prefill_power"]["value"]) for d in soc["devices"]}
    batch, prompt, mixed, verify, affinity, chunk = (study(s) for s in ("batch", "prompt", "mixed", "verify", "affinity", "chunk"))
    for device in watts:
        for n in (32 * 2 ** k for k in range(9)):
            same(f"prompt {device} {n}", prompt[device, "prefill", n, "throughput"], 1e3 * n / prompt[device, "prefill", n, "time"])
        same(f"batch {device}", batch[device, "prefill of 512 tokens", 1, "time"], prompt[device, "prefill", 512, "time"])
        for b in (1, 4, 16):
            for rows in (128, 256, 512, 1024):
                key = (device, f"{b} decoding sequences", rows)
                same(f"mixed {key} decode", mixed[(*key, "decode_slowdown")], mixed[(*key, "time")] / batch[device, "decode step at 1024 tokens", b, "time"])
                same(f"mixed {key} prefill", mixed[(*key, "prefill_slowdown")], mixed[(*key, "time")] / prompt[device, "prefill", rows, "time"])
        for n in (0, 1, 2, 4, 8, 16, 32):
            same(f"verify {device} {n}", verify[device, "verification", n, "time_per_token"], verify[device, "verification", n, "time"] / (n + 1))
        same(f"verify {device} of none", verify[device, "verification", 0, "time"], batch[device, "decode step at 1024 tokens", 1, "time"], 1e-6)
    for (device, op, rows, metric), value in affinity.items():
        if metric == "efficiency":
            same(f"affinity {device} {op} {rows}", value, affinity[device, op, rows, "rate"] / watts[device][rows > 1])
        elif metric == "rate_with_compile" and rows > 1:
            fixed, each = soc["compiler"]["fixed"], soc["compiler"]["per_token"]
            scale = {"s": 1, "ms": 1e-3, "us": 1e-6}
            compiled = fixed["value"] * scale[fixed["unit"]] + each["value"] * scale[each["unit"].split("/")[0]] * rows
            flop = flop_of(rows)
            seconds = flop / (affinity[device, op, rows, "rate"] * 1e12)
            same(f"affinity {device} {op} {rows} compiled", value, flop * layers / (seconds * layers + compiled) / 1e12, 1e-3)
    for rows in (32 * 2 ** k for k in range(6)):
        key = ("npu", "prompt of 1024 tokens", rows)
        same(f"chunk {rows} kernels", chunk[(*key, "kernels")], math.ceil(1024 / rows) * 2 * layers)
        same(f"chunk {rows} throughput", chunk[(*key, "throughput")], 1024 / (chunk[(*key, "bound_request")] / 1e3), 1e-6)
        if not chunk[(*key, "bound_kernel")] < chunk[(*key, "bound_layer")] < chunk[(*key, "bound_request")]:
            BAD.append(f"chunk {rows}: bounds are not in order")
    best = max(v for (_, what, _, metric), v in chunk.items() if metric == "throughput" and what.startswith("prompt"))
    (share, knee), = [(x, v) for (_, what, x, _), v in chunk.items() if what == "knee"]
    least = min(rows for rows in (32 * 2 ** k for k in range(6)) if chunk["npu", "prompt of 1024 tokens", rows, "throughput"] >= share * best)
    same("chunk knee", least / 2 < knee <= least, True)
    cap = soc["ddr"]["peak"]["value"] * soc["ddr"]["together"]["value"]
    for model in ("max-min", "none"):
        corun = study("corun", "--set", f"sim.contention={model}")
        demand = {(d, what): x for (d, what, x, metric) in corun if metric == "slowdown"}
        for (device, what), x in demand.items():
            other = next(d for d, _ in demand if d != device)
            y = demand[other, " beside ".join(reversed(what.split(" beside ")))]
            got = shared(x, y, max(cap, x, y))[0] if model == "max-min" else x
            same(f"corun {model} {device} {what}", corun[device, what, x, "slowdown"], x / got)
        for (device, what, _, metric), value in corun.items():
            if metric == "work_over_alone":
                a, b = what.split(" and ")
                slow = [corun[d, w, demand[d, w], "slowdown"] for d, w in (("npu", f"{a} beside {b}"), ("igpu", f"{b} beside {a}"))]
                same(f"corun {model} {what}", value, sum(1 / s for s in slow))


def flop_of(rows):
    """Attention of a prompt of so many rows, causal: each row with itself and those before, keys and values."""
    m = json.loads(pathlib.Path("hwmodels/llm/llama-3.2-3b.json").read_text())
    return 4 * m["heads"] * m["head_dim"] * rows * (rows + 1) / 2


# ---- compare --tune

def tuned():
    load = ["--workload", "mixed:reactive_per_min=20,proactive_per_min=20,duration_s=30,output_scale=0.3"]
    d = document("compare", "--policy", "mlfq", "--policy", "edf", *load, "--replications", "3", "--tune", "3",
                 *(w for m in ("reactive.*_s.mean", "counters.schedule_rounds") for w in ("--metric", m)))
    t = d["tuning"]

    def values(policy, seeds):
        runs = [document("run", "--policy", policy, "--seed", str(s), *load) for s in seeds]
        return [{**r["metrics"], **{f"counters.{k}": v for k, v in r["counters"].items()}} for r in runs]
    for policy, x in t["policies"].items():
        same(f"tune {policy}: a counter that was named", " ".join(m for m in x["metrics"] if m.startswith("counters.")), "counters.schedule_rounds")
        best = f"{policy}:{x['parameters']}"
        for key, which in (("training_tuned", best), ("training_given", policy)):
            same(f"tune {policy} {key}", x[key], statistics.fmean(v[t["metric"]] for v in values(which, t["training_seeds"])), 1e-6)
        if not x["training_tuned"] <= x["training_given"]:
            BAD.append(f"tune {policy}: {x['training_tuned']} is no better than {x['training_given']}")
        printed = [name for name, m in x["metrics"].items() if m["p_holm"] is not None]  # the usual eight have a correction
        if "reactive.ttft_s.mean" not in printed or len(printed) < 5:
            BAD.append(f"tune {policy}: an adjusted p of {printed} alone")
        mine, given = values(best, d["seeds"]), values(policy, d["seeds"])
        for name, m in x["metrics"].items():
            a, b = [v.get(name) for v in mine], [v.get(name) for v in given]
            if None in a or None in b:
                continue
            same(f"tune {policy} {name} mean", m["mean"], statistics.fmean(a), 1e-6)
            same(f"tune {policy} {name} given", m["given_mean"], statistics.fmean(b), 1e-6)
            diff = [p - q for p, q in zip(a, b)]
            mean, low, high = reported(diff)
            scale = max(abs(v) for v in a + b) or 1.0
            same(f"tune {policy} {name} diff", m["diff"] / scale, mean / scale, 1e-6)
            if moments(diff)[2] > 0 and m["diff_low"] is not None and m.get("method") != "bootstrap-t":
                CHECKED["tune"] += 2
                if abs(m["diff_low"] - low) > 1e-6 * scale or abs(m["diff_high"] - high) > 1e-6 * scale:
                    BAD.append(f"tune {policy} {name}: [{m['diff_low']}, {m['diff_high']}], worked out [{low}, {high}]")


# ---- suites

def plain(x):
    """A result without what repeats the command line."""
    if isinstance(x, dict):
        return {k: plain(v) for k, v in x.items() if k not in ("about", "command", "point", "version")}
    return [plain(v) for v in x] if isinstance(x, list) else x


def suites():
    """A point of a suite is the same command with the point's options by itself, with the suite's replications unless others are given."""
    points = [("a", "core-ultra-7-258v", "llama-3.2-1b:bits=4", "w1:n=3", 5, {"sim.contention": "none"}), ("b", "core-ultra-5-125h", "llama-3.2-3b", "w1:n=4", 6, {"sim.kv_block_tokens": 32})]
    path = FOLDER / "suite.json"
    path.write_text(json.dumps({"name": "t", "suite": {"about": "t", "references": ["fcfs"]}, "replications": 2, "metrics": ["all.e2e_s.mean", "energy_j"],
                                "rows": [{"point": n, "soc": soc, "llm": llm, "workload": w, "seed": seed, **more} for n, soc, llm, w, seed, more in points]}))
    for words, more, replications in ((["compare", "--policy", "fcfs", "--policy", "edf"], [], 2), (["compare", "--policy", "fcfs", "--policy", "hpf"], ["--replications", "3"], 3),
                                      (["ablate", "agent-xpu-v2"], [], 2), (["search", "--policy", "fcfs", "--slo", "all.e2e_s.mean<=1000", "--precision", "1", "--confidence", "0.5"], [], None)):
        d = document(*words, "--suite", str(path), *more)
        same(f"suite {words[0]}: points", ",".join(p["point"] for p in d["points"]), "a,b")
        for got, (name, soc, llm, work, seed, sets) in zip(d["points"], points):
            options = ["--soc", soc, "--llm", llm, "--workload", work, "--seed", str(seed)] + [w for k, v in sets.items() for w in ("--set", f"{k}={v}")]
            metrics = [w for m in ("all.e2e_s.mean", "energy_j") for w in ("--metric", m)] if words[0] != "search" else []
            alone = document(*words, *options, *metrics, *(["--replications", str(replications)] if replications else []))
            if words[0] != "search":
                same(f"suite {words[0]} {name}: replications", got["replications"], replications)
            a, b = plain(got), plain(alone)
            for key in sorted({*a, *b} - {"config_hash"}):
                CHECKED["suite"] += 1
                if a.get(key) != b.get(key):
                    BAD.append(f"suite {words[0]}, point {name}: {key} is not that of the command by itself: {json.dumps(a.get(key))[:150]} / {json.dumps(b.get(key))[:150]}")


# The suffix of a name is its unit; what ends otherwise is a count, a factor or a word.
UNITS = {"_s": "s", "_frac": "1", "_tokens": "tokens", "_c": "C", "_j": "J", "_watts": "W", "_req_per_min": "requests/min", "_tokens_per_s": "tokens/s",
         "_j_per_token": "J/token", "_j_per_job": "J/job", "_j_per_output_token": "J/output token"}


def united(what, name, unit):
    suffix = max((x for x in UNITS if name.endswith(x)), key=len, default=None)
    if suffix and not (suffix == "_s" and "per" in name.split(".")[-1].split("_") and not name.split(".")[-1].startswith("norm")):
        same(f"{what} {name}: unit", unit, UNITS[suffix])


def named():
    """Settings have the defaults of a run's configuration and the units of their names; metrics have theirs."""
    sim = document("run", "--policy", "fcfs", "--workload", "mixed:duration_s=60", "-q")["config"]["sim"]
    settings = document("list", "setting")
    for r in settings:
        at = sim
        for k in r["path"].split(".")[1:]:
            at = at[k]
        number = isinstance(at, (int, float)) and not isinstance(at, bool)
        same(f"settings {r['path']}: default", float(r["default"]) if number else r["default"], float(at) if number else str(at).lower() if isinstance(at, bool) else at)
        united("settings", r["path"], r["unit"])
        ends = [float(x) for x in r["range"].split("..")] if re.fullmatch(r"[-\d.e+]+\.\.[-\d.e+]+", r["range"]) else []
        if number and ends and not ends[0] <= at <= ends[1]:
            BAD.append(f"settings {r['path']}: {at} is not in {r['range']}")
    leaves_of = lambda t, way: [x for k, v in t.items() for x in leaves_of(v, way + [k])] if isinstance(t, dict) else [".".join(way)]
    same("settings: all that a configuration has", ", ".join(sorted(set(leaves_of(sim, ["sim"])) - {r["path"] for r in settings})), "")
    for r in document("list", "metric"):
        united("metrics", r["name"], r["unit"])


def main():
    for part in (numbers_listed, listed, kernels, characterised, tuned, suites, named):
        part()
    print("\n".join(f"FAILED: {b}" for b in BAD[:40]))
    print(f"{sum(CHECKED.values())} numbers and texts worked out again: {dict(CHECKED)}")
    return 1 if BAD or sum(CHECKED.values()) < 3000 else 0


if __name__ == "__main__":
    sys.exit(main())
