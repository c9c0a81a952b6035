"""Writes the schemas of results (docs/schemas/result-*.json) from what the commands say of their own output (--schema);
several invocations of a command are joined: keys of all, required those of every one. The schemas of machine and model files
come from the table that reads them (`list soc-keys`, `list llm-keys`); the other input formats are written by hand.

    python3 docs/schemas/make.py [--check] [NAME ...]    # with build/xpusim; --check: exit 1 where the shipped differs
"""
import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path

HERE = Path(__file__).resolve().parent
XPUSIM = Path(os.environ.get("BUILD", HERE.parent.parent / "build")).resolve() / "xpusim"
SMALL = ["--workload", "mixed:reactive_per_min=6,proactive_per_min=9,duration_s=30,output_scale=0.5"]
PHONE = ["--soc", "snapdragon-8elite", "--llm", "qwen2.5-1.5b"]  # no package meter reads it
ASKED = ["--qoe", "1,4.8", "--quantile", "97.5", "--below", "3", "--llm", "llama-3.2-3b", "--llm", "small=qwen3-0.6b"]  # two models, and more metrics
REAL = ["drive", "--clock", "cpu", "--llm", "random-256", "--trace", "TRACE"]
TWO = ["compare", "--policy", "fcfs", "--policy", "agent-xpu-v2", "--replications", "3", *SMALL]

# name: title, invocations
RESULTS = {
    "run": ("xpusim run --json", [["run", "--policy", "fcfs", *SMALL, *more] for more in ([], PHONE, ASKED)] + [["run", "--policy", "agent-xpu-v2", "--llm", "llama-3.1-8b"]]),
    "run-steady": ("xpusim run --steady --json", [
        ["run", "--policy", "fcfs", "--steady", "--workload", "mixed:reactive_per_min=2,proactive_per_min=2,duration_s=12000", *more]
        for more in ([], PHONE, ASKED)]),
    "drive": ("xpusim drive --json", [[*REAL, "--policy", "fcfs"], [*REAL, "--policy", "agent-xpu-v2"]]),
    "drive-compare": ("xpusim drive --compare --json", [[*REAL, "--compare", "--policy", "fcfs", "--policy", "pd-static", "--repeat", "2"]]),
    "measure-fit": ("xpusim measure --fit --json", [["measure", "--fit", "ROWS"], ["measure", "--fit", "ROWS", "--ddr-peak", "90"]]),
    "calibrate": ("xpusim calibrate --json", [["calibrate", "--points", "reference", "--soc", s] for s in ("core-ultra-7-155h", "core-ultra-7-258v")] + [
        ["calibrate", "--soc", "core-ultra-5-125h", "--measured", "model=llama-3-8b,bits=4,ttft_ms@1024=4100,tpot_ms@1024=75"]]),
    "bisect": ("xpusim bisect --json", [["bisect", "--policy", "fcfs", "--b-policy", b, "-o", "OUT", *SMALL] for b in ("edf", "fcfs")]),
    "plot-list": ("xpusim plot list --json", [["plot", "list"]]),
    "compare": ("xpusim compare --json", [
        TWO, [*TWO, "--regret", "--tune", "3", "--tune-replications", "1", "--metric", "counters.preempt_asked"], [*TWO, "--uncertainty", "64"], [*TWO, "--uncertainty", "16"]]),
    "compare-load": ("xpusim compare --load --json", [[*TWO, "--load", "0.5,0.9"], [*TWO, "--load", "0.5", "--select", "0.9", "--at-most", "5"]]),
    "compare-select": ("xpusim compare --select --json", [
        [*TWO, "--policy", "fcfs:device=cpu", "--select", "0.95"], [*TWO, "--select", "0.95", "--at-most", "5", "--indifference", "0.1%"]]),
    "compare-store": ("xpusim compare --store FILE --json", [["compare", "--store", "STORE"], ["compare", "--store", "STORE", "--by", "rate"], ["compare", "--store", "HALF"]]),
    "search": ("xpusim search --json", [
        ["search", "--policy", "fcfs", "--policy", "edf", "--slo", "reactive.e2e_s.p90<=20", "--replications", "2", "--precision", "0.5", *SMALL]]),
    "falsify": ("xpusim falsify --json", [
        ["falsify", "--policy", p, "--baseline", b, "--budget", "16", "--replications", "1", "--confirm", "5", *SMALL]
        for p, b in (("fcfs", "edf"), ("edf", "edf"))]),
    "gate": ("xpusim gate --json", [["gate", "--baseline", "GATE", "--all"], ["gate", "--baseline", "GATE"]]),
    "claims-headline": ("xpusim claims --headline --json", [["claims", "B15", "D1", "--headline", "--replications", "2", *more] for more in ([], ["--uncertainty", "2"])]),
    "claims": ("xpusim claims --json", [["claims", "A2", "B15", "D1", "--replications", "2"], ["claims", "B17", "D22"], ["claims", "B15", "--replications", "2", "--brief"]]),
    "explain": ("xpusim explain --json", [["explain", "--request", "1", "--policy", "fcfs", *SMALL]]),
    "explain-job": ("xpusim explain --job --json", [["explain", "--job", "1", "--policy", "fcfs", "--workload", "coding-agent"], ["explain", "--job", "0", "--policy", "fcfs", *SMALL]]),
    "interference": ("xpusim explain --interference --json", [["explain", "--interference", "--policy", "fcfs", *SMALL]]),
    "diff": ("xpusim diff --json", [["diff", "--policy", "fcfs", "--b-policy", "edf", *SMALL], ["diff", "--policy", "fcfs", *SMALL]]),
    "characterize": ("xpusim characterize --json", [["characterize"]]),
    "list-policy": ("xpusim list policy NAME --json", [["list", "policy", "agent-xpu-v2"], ["list", "policy", "fcfs"]]),
    "list-soc": ("xpusim list soc NAME --json", [["list", "soc", "core-ultra-5-125h"]]),
    "list-kernels": ("xpusim list kernels --json", [["list", "kernels"]]),
    "list-metric": ("xpusim list metric --json", [["list", "metric"]]),
    "list-dataset": ("xpusim list dataset --json", [["list", "dataset"]]),
    "graphs": ("xpusim graphs --json", [["graphs", "--p", "10,10,10", "--d", "11,11,11", "--s", "20,20,20", "--chunks", "2"], ["graphs", "--random", "3"], ["graphs", "--random", "3", "--keep-old"]]),
    "selftest": ("xpusim selftest --json", [["selftest"], ["selftest", "--controls"]]),
    "validate": ("xpusim validate --json", [
        ["validate", "--points", "reference", *more] for more in ([], ["--soc", "core-ultra-7-258v"], ["--soc", "apple-m2-10core"], ["--leave-machine-out", "1"])]),
}


# Files whose keys a table in the program gives: title, and where the table is printed.
INPUTS = {
    "soc": ("A machine: --soc FILE.json, hwmodels/soc", "soc-keys"),
    "llm": ("A model: --llm FILE.json, hwmodels/llm (a Hugging Face config.json is read as well)", "llm-keys"),
}
JSON_TYPES = {"count": "integer", "number": "number", "boolean": "boolean", "text": "string", "choice": "string"}


def of_key(row):
    """The schema of one key, without what lies below it."""
    low, _, high = row["range"].partition("..")
    limits = {"minimum": float(low), "maximum": float(high)} if high else {}
    about = {"description": row["about"]}
    if row["type"] == "quantity":
        return {"$ref": "quantity.json", "description": f"{row['about']} In {row['unit']}, from {low} to {high}."}
    if row["type"] == "array":
        return {"type": "array", "minItems": int(low), "maxItems": int(high), "items": of_object(row), **about}
    if row["type"] == "object":
        return {**of_object(row), **about}
    if row["type"] == "choice":
        return {"type": "string", "enum": row["range"].split("|"), **about}
    return {"type": JSON_TYPES[row["type"]], **limits, **about}


def of_object(row):
    if not row["checked"]:
        return {"type": "object"}
    return {"type": "object", "properties": {}, "required": [], "additionalProperties": False}


def make_input(name):
    title, keys = INPUTS[name]
    run = subprocess.run([XPUSIM, "list", keys, "--json"], capture_output=True, text=True, check=True)
    schema = of_object({"checked": True})
    for row in json.loads(run.stdout):
        at = schema
        *above, key = row["key"].split(".")
        for step in above:
            at = at["properties"][step.removesuffix("[]")]
            at = at.get("items", at)
        at["properties"][key] = of_key(row)
        if row["required"]:
            at["required"].append(key)
    head = {"$schema": "https://json-schema.org/draft/2020-12/schema", "title": title,
            "$comment": "written by docs/schemas/make.py from the table that reads the file"}
    return json.dumps({**head, **schema}, indent=1, ensure_ascii=False) + "\n"


def types(schema):
    t = schema.get("type", [])
    return [t] if isinstance(t, str) else t


def joined(a, b):
    """What allows all that one of the two allows."""
    if a is False or b is False:
        return b if a is False else a
    if a == b or not b:
        return a
    if not a:
        return b
    out = {**b, **a}
    names = sorted(set(types(a)) | set(types(b)))
    out["type"] = names[0] if len(names) == 1 else names
    objects = [s for s in (a, b) if "object" in types(s)]
    if len(objects) == 2:
        props = {}
        for name in [*a.get("properties", {}), *b.get("properties", {})]:
            if name not in props:
                mine, other = a.get("properties", {}).get(name), b.get("properties", {}).get(name)
                props[name] = joined(mine or {}, other or {})
        if props or "properties" in out:
            out["properties"] = props
        out["additionalProperties"] = joined(a.get("additionalProperties", {}), b.get("additionalProperties", {}))
        out["required"] = [n for n in a.get("required", []) if n in b.get("required", [])]
        if not out["required"]:
            del out["required"]
    if "items" in a or "items" in b:
        out["items"] = joined(a.get("items", {}), b.get("items", {}))
    return out


def settled(schema, words=()):
    """The same with one schema for all items of an array, and for all members that the command line names."""
    if not isinstance(schema, dict):
        return schema
    out = dict(schema)
    if isinstance(out.get("items"), list):
        all_items = {}
        for item in out["items"]:
            all_items = joined(all_items, settled(item, words))
        out["items"] = all_items
    elif "items" in out:
        out["items"] = settled(out["items"], words)
    if "properties" in out:
        out["properties"] = {k: settled(v, words) for k, v in out["properties"].items()}
        if out["properties"] and all(name in words for name in out["properties"]):
            values = {}
            for value in out.pop("properties").values():
                values = joined(values, value)
            out["additionalProperties"] = values
            out.pop("required", None)
    if "additionalProperties" in out:
        out["additionalProperties"] = settled(out["additionalProperties"], words)
    if out.get("required") == []:
        del out["required"]
    return out


def prepared(folder):
    """Files that commands read and write: a store with a sweep in it, one with a half of a sweep, a baseline with results,
    a trace that a computer runs in no time, rows of a simulated measurement."""
    store, gate, trace, rows = folder / "s.db", folder / "gate.json", folder / "t.csv", folder / "rows.csv"
    half, spec = folder / "half.db", folder / "spec.json"
    spec.write_text(json.dumps({"base": {"workload": SMALL[1]}, "axes": {"policy": ["fcfs", "edf"]}, "replications": 3}))
    subprocess.run([XPUSIM, "sweep", spec, "-o", half, "--shard", "0/2", "--quiet"], check=True)
    trace.write_text("# xpusim-trace v1\nrequest_id,session_id,turn,class,arrival_s,gap_s,input_tokens,output_tokens,prefix_tokens\n" + "".join(
        f"{i},{i},0,{'proactive' if i % 2 else 'reactive'},{i / 1000},,{20 * i + 20},{4 + i % 3},0\n" for i in range(4)))
    subprocess.run([XPUSIM, "measure", "--backend", "sim", "--sim", "noise=0.02", "--size", "tiny", "--quiet", "-o", rows], check=True)
    gate.write_text(json.dumps({"format": 1, "groups": [{
        "name": "g", "soc": "core-ultra-5-125h", "llm": "llama-3.2-3b", "test": "exact", "seed": 1, "replications": 2,
        "workload": SMALL[1], "policies": ["fcfs", "edf"], "metrics": [{"name": "reactive.e2e_s.mean", "better": "lower"}]}]}))
    subprocess.run([XPUSIM, *TWO, "--load", "0.5,0.9", "--store", store, "--quiet"], check=True, stdout=subprocess.DEVNULL)
    subprocess.run([XPUSIM, "gate", "--baseline", gate, "--update", "--quiet"], check=True, capture_output=True)
    return {"STORE": str(store), "HALF": str(half), "GATE": str(gate), "TRACE": str(trace), "ROWS": str(rows), "OUT": str(folder / "out.csv")}


def make(name, files):
    title, invocations = RESULTS[name]
    schema = {}
    for args in invocations:
        args = [files.get(a, a) for a in args]
        run = subprocess.run([XPUSIM, *args, "--schema"], capture_output=True, text=True, check=False)
        if run.returncode not in (0, 1) or not run.stdout:
            sys.exit(f"{' '.join(args)}: {run.stderr}")
        schema = joined(schema, settled(json.loads(run.stdout), args))
    head = {"$schema": "https://json-schema.org/draft/2020-12/schema", "title": title,
            "$comment": "written by docs/schemas/make.py; null is a number that is not defined"}
    return json.dumps({**head, **schema}, indent=1, ensure_ascii=False) + "\n"


def main(args):
    check = "--check" in args
    names = [a for a in args if a != "--check"] or [*INPUTS, *RESULTS]
    bad = 0
    with tempfile.TemporaryDirectory() as folder:
        files = prepared(Path(folder))
        for name in names:
            path = HERE / (f"{name}.json" if name in INPUTS else f"result-{name}.json")
            text = make_input(name) if name in INPUTS else make(name, files)
            if check and (not path.exists() or path.read_text(encoding="utf-8") != text):
                print(f"{path.name}: another schema now: python3 docs/schemas/make.py {name}, and say so in CHANGELOG.md")
                bad = 1
            elif not check:
                path.write_text(text, encoding="utf-8")
    return bad


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
