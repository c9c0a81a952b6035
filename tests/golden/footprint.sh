#!/bin/sh
# A runtime's memory does not count in a run by default. When it counts, the peak grows by the
# closed form, and KV gets that much less. With two models a process has two tokenizers, and the
# activations of one pass.
# shellcheck disable=SC2086 # options of a load
set -u
cd "$(dirname "$0")/../.." || exit 2
x=${BUILD:-build}/xpusim
tmp=$(mktemp -d)
trap 'rm -rf "$tmp"' EXIT
status=0

counted=soc.devices.igpu.footprint.counted=true
run() { # output, options
    out=$1
    shift
    "$x" run --soc core-ultra-7-155h --policy fcfs:device=igpu --json "$@" >"$tmp/$out" ||
        {
            echo "FAILED: run $*"
            status=1
        }
}
# Both runs of a load, and its trace.
both() { # name, workload, models...
    name=$1
    load="--workload $2 --seed 3"
    shift 2
    run "$name-off" $load "$@"
    run "$name-on" $load "$@" --set "$counted"
    "$x" trace gen $load >"$tmp/$name-trace" || status=1
}
both one mixed:reactive_per_min=2,proactive_per_min=2,duration_s=60 --llm llama-3.1-8b
both two leader-subagents --llm leader=qwen3-0.6b --llm subagent=qwen3-4b
python3 - "$tmp" <<'PY' || status=1
import csv, json, sys
d = sys.argv[1]
def peak(name):
    def find(x):
        if isinstance(x, dict):
            for k, v in x.items():
                if k == "memory_peak_bytes":
                    yield v
                yield from find(v)
        elif isinstance(x, list):
            for v in x:
                yield from find(v)
    return next(find(json.load(open(f"{d}/{name}"))))
soc = json.load(open("hwmodels/soc/core-ultra-7-155h.json"))
f = next(x["footprint"] for x in soc["devices"] if x["kind"] == "igpu")
v = {k: f[k]["value"] for k in ("fixed", "weights", "tokenizer", "activations", "scores")}
def parts(name, longest):
    """Bytes that a model adds for the whole run, in a pass, and of that its scores."""
    llm = json.load(open(f"hwmodels/llm/{name}.json"))
    h, kv = llm["hidden"], llm["kv_heads"] * llm["head_dim"]
    q = llm["heads"] * llm["head_dim"]
    body = llm["layers"] * (h * (q + 2 * kv) + q * h + 3 * h * llm["ffn_hidden"])
    head = h * llm["vocab"]
    b, hb = llm["body_bytes_per_weight"]["value"], llm["head_bytes_per_weight"]["value"]
    weights = body * b + head * hb * (1 if llm["tied_head"] else 2)
    scores = v["scores"] * llm["heads"] * longest**2
    return (v["weights"] - 1) * weights + v["tokenizer"] * 1e3 * llm["vocab"], v["activations"] * h * longest + scores, scores
def longest(name):
    found = {}
    for r in csv.DictReader(l for l in open(f"{d}/{name}-trace") if not l.startswith("#")):
        model = r.get("model", "")
        found[model] = max(found.get(model, 0), int(r["input_tokens"]))
    return found
for name, models in ("one", {"": "llama-3.1-8b"}), ("two", {"leader": "qwen3-0.6b", "subagent": "qwen3-4b"}):
    prompts = longest(name)
    assert set(prompts) == set(models), prompts
    of = [parts(llm, prompts[m]) for m, llm in models.items()]
    extra = v["fixed"] * 1e9 + sum(p[0] for p in of) + max(p[1] for p in of)
    if max(p[2] for p in of) < 1e6:
        print("FAILED: scores take less than a megabyte, so the sum does not test them")
        sys.exit(1)
    got = peak(f"{name}-on") - peak(f"{name}-off")
    if abs(got / extra - 1) > 1e-6:
        print(f"FAILED: {name}: the peak grew by {got:.0f} bytes, by hand {extra:.0f}")
        sys.exit(1)
PY
exit $status
