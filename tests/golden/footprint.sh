#!/bin/sh
# A runtime's memory in a run: off as shipped; counted, the peak grows by the closed form, and KV gets that much less.
set -u
cd "$(dirname "$0")/../.." || exit 2
x=${BUILD:-build}/xpusim
tmp=$(mktemp -d)
trap 'rm -rf "$tmp"' EXIT
status=0

run() { # output, options
    out=$1
    shift
    "$x" run --soc core-ultra-7-155h --llm llama-3.1-8b --policy fcfs:device=igpu \
        --workload mixed:reactive_per_min=2,proactive_per_min=2,duration_s=60 --seed 3 --json "$@" >"$tmp/$out" ||
        {
            echo "FAILED: run $*"
            status=1
        }
}
run off
run on --set soc.devices.igpu.footprint.counted=true
"$x" trace gen --workload mixed:reactive_per_min=2,proactive_per_min=2,duration_s=60 --seed 3 >"$tmp/trace" || status=1
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
llm = json.load(open("hwmodels/llm/llama-3.1-8b.json"))
h, kv = llm["hidden"], llm["kv_heads"] * llm["head_dim"]
q = llm["heads"] * llm["head_dim"]
body = llm["layers"] * (h * (q + 2 * kv) + q * h + 3 * h * llm["ffn_hidden"])
head = h * llm["vocab"]
b, hb = llm["body_bytes_per_weight"]["value"], llm["head_bytes_per_weight"]["value"]
weights = body * b + head * hb * (1 if llm["tied_head"] else 2)
rows = list(csv.DictReader(l for l in open(f"{d}/trace") if not l.startswith("#")))
longest = max(int(r["input_tokens"]) for r in rows)
v = {k: f[k]["value"] for k in ("fixed", "weights", "tokenizer", "activations", "scores")}
extra = v["fixed"] * 1e9 + (v["weights"] - 1) * weights + v["tokenizer"] * 1e3 * llm["vocab"] + v["activations"] * h * longest
extra += v["scores"] * llm["heads"] * longest**2
if v["scores"] * llm["heads"] * longest**2 < 1e6:
    print("FAILED: scores take less than a megabyte, so the sum does not test them")
    sys.exit(1)
got = peak("on") - peak("off")
if abs(got / extra - 1) > 1e-6:
    print(f"FAILED: the peak grew by {got:.0f} bytes, by hand {extra:.0f}")
    sys.exit(1)
PY
exit $status
