#!/bin/sh
# `xpusim list` must show of a machine what `--set` takes. Every path of `list soc NAME` and `list
# llm NAME` is set to its value, and nothing changes. A path set to another value changes that
# number and no other.
set -u
cd "$(dirname "$0")/../.." || exit 2
x=${BUILD:-build}/xpusim
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
bad=0
fail() { echo "FAILED: $*"; bad=1; }

for machine in core-ultra-7-155h snapdragon-8gen3 rk3588; do
    "$x" list kernels --soc $machine --llm llama-3.2-1b >"$dir/plain" || exit 1
    # three words a line: path, value, unit; a value shown is all of it ("%.17g" in JSON)
    "$x" list soc $machine --json | tr -d '\n\t' | sed "s/}, {/}\\n{/g" |
        sed -n 's/.*"path":"\([^"]*\)","value":\([^,]*\),"unit":"\(..*\)","low".*/\1=\2/p' >"$dir/paths"
    [ "$(wc -l <"$dir/paths")" -gt 40 ] || fail "$machine: only $(wc -l <"$dir/paths") quantities"
    split -l 12 "$dir/paths" "$dir/part."
    for part in "$dir"/part.*; do
        set --
        while read -r p; do set -- "$@" --set "$p"; done <"$part"
        "$x" list kernels --soc $machine --llm llama-3.2-1b "$@" >"$dir/set" 2>"$dir/why" || fail "$machine: $(cat "$dir/why")"
        cmp -s "$dir/plain" "$dir/set" || fail "$machine: setting what is shown changes kernels: $*"
    done
    rm -f "$dir"/part.*
done
# a file that a run refuses is refused in the same words: its numbers would look like those of a run
for damage in '/"name"/d' 's/"unit": *"GB\/s"/"unit": "GB"/' 's/"format": *1/"format": 2/' '/"decode_power"\|"kv_bytes/s/"value": *[0-9.]*/"value": -1/' \
    's/"weight_bits": *[0-9]*/"weight_bits": 99/' '$s/}/, "hello": 1}/'; do
    for what in soc/core-ultra-7-155h llm/llama-3.2-1b; do
        sed "$damage" "hwmodels/$what.json" >"$dir/damaged.json"
        cmp -s "hwmodels/$what.json" "$dir/damaged.json" && continue
        "$x" run --policy fcfs "--${what%/*}" "$dir/damaged.json" >"$dir/plain" 2>"$dir/why"
        [ $? = 2 ] || fail "$what, $damage: a run takes it"
        "$x" list "${what%/*}" "$dir/damaged.json" >"$dir/set" 2>"$dir/said"
        [ $? = 2 ] && [ ! -s "$dir/set" ] && cmp -s "$dir/why" "$dir/said" || fail "$what, $damage: $(cat "$dir/said")"
    done
done
# list takes a model as --llm names it. Qwen3 4B has 36 layers of 100925440 weights, and a head of 151936 x 2560 that is the
# embedding, too. At 4 bits a weight has 0.56 B, and 1.01 in the head. Each of 36 x 2 x 8 x 128 elements of KV has a byte.
"$x" list llm qwen3-4b:bits=4 | sed -n 2p >"$dir/sums"
grep -q "^4.022e+09 weights a token, 2.43 GB with embedding, 73.73 kB of KV a token; 4-bit" "$dir/sums" || fail "$(cat "$dir/sums")"
for wrong in "llm qwen3-4c:did you mean qwen3-4b?" "soc core-ultra-7-258:did you mean core-ultra-7-258v?" \
    "llm qwen3-4b:bits=x:bits must be a whole number" "llm qwen3-4b,qwen3-8b:one model at a time"; do
    # shellcheck disable=SC2086
    "$x" list ${wrong%:*} >"$dir/set" 2>"$dir/why"
    [ $? = 2 ] && [ ! -s "$dir/set" ] && grep -q "${wrong##*:}" "$dir/why" || fail "$wrong: $(cat "$dir/why")"
done
# powers below 10 W keep their digits: the NPU of XDNA2 draws 0.9 W in prompts and 1.4 W in decodes
"$x" list kernels --soc ryzen-ai-xdna2 | awk '$1 == "npu" && /(prefill|decode) / { print $3, $NF }' | sort -u >"$dir/watts"
printf 'decode 1.4\nprefill 0.9\n' | cmp -s - "$dir/watts" || fail "watts of an NPU: $(cat "$dir/watts")"
# A run takes what `list setting` shows, and has it anyway.
short() { "$x" run --policy fcfs --workload mixed:duration_s=60 --json "$@"; }
set --
for p in $("$x" list setting | awk 'NR > 1 {print $1 "=" $2}'); do set -- "$@" --set "$p"; done
[ $# -gt 60 ] || fail "only $# settings"
short >"$dir/plain" && short "$@" 2>"$dir/why" | cmp -s - "$dir/plain" || fail "settings as shown: $(cat "$dir/why")"
# a runtime by its name and width, dots included, is the one of that index
by() { "$x" list kernels --soc core-ultra-7-155h --llm llama-3.2-1b --set "soc.devices.cpu.runtimes.$1.rate=0.5"; }
by llama.cpp/8 >"$dir/name" && by 0 >"$dir/index" && cmp -s "$dir/name" "$dir/index" || fail "a runtime by name"
"$x" list kernels --soc core-ultra-7-155h --llm llama-3.2-1b | cmp -s - "$dir/name" && fail "a runtime's rate changes nothing"
by llama.cpp/7 >/dev/null 2>"$dir/why"
[ $? = 2 ] && grep -q 'there is no "llama' "$dir/why" || fail "$(cat "$dir/why")"
# data sets: rows counted by hand
rows=$(grep -vc '^#' traces/datasets/samsum.csv)
"$x" list dataset samsum | grep -q "^samsum  *$((rows - 1)) " || fail "rows of samsum"
"$x" list dataset nope 2>&1 | grep -q "no data set is called nope" || fail "an unknown data set"
# workloads: requests of each class, and what a trace says of its jobs
"$x" list workload --json >"$dir/workloads" 2>/dev/null || fail "list workload"
for w in traces/workloads/*.json; do
    w=$(basename "$w" .json)
    "$x" trace gen --workload "$w" -o "$dir/w.csv" -q 2>/dev/null || "$x" trace gen --workload "$w" -o "$dir/w.csv" || fail "$w"
    "$x" trace stats "$dir/w.csv" --json >"$dir/stats" || fail "stats of $w"
    python3 - "$w" "$dir/workloads" "$dir/w.csv" "$dir/stats" <<'PY' || fail "list workload: numbers of $w"
import csv, json, sys
name, listed, rows, stats = sys.argv[1:]
row = next(r for r in json.load(open(listed)) if r["name"] == name)
with open(rows) as f:
    classes = [r["class"] for r in csv.DictReader(line for line in f if not line.startswith("#"))]
stats = json.load(open(stats))
jobs = stats["graph"]["jobs"] if "graph" in stats else stats["sessions"]
models = {m for m in row["models"].split(", ") if m}
file = json.load(open(f"traces/workloads/{name}.json"))
def named(x):
    return {x["model"]} if "model" in x else set()
wanted = set().union(*(named(c).union(*(named(s) for s in c.get("subagents", []))) for c in file["clients"]))
ok = (row["reactive_requests"] == classes.count("reactive") and row["proactive_requests"] == classes.count("proactive")
      and row["jobs"] == jobs and models == wanted and row["duration_s"] == file["duration_s"])
if not ok:
    print(row, classes.count("reactive"), classes.count("proactive"), jobs, wanted)
sys.exit(not ok)
PY
done
"$x" list workload flows | grep -q "^flows: Reactive and proactive flows" || fail "list workload flows"
"$x" list workload nope 2>&1 | grep -q "no workload file is called nope" || fail "an unknown workload"
# A pattern of metrics gives all metrics that it matches, each once, in the order of `run --json`.
two() { "$x" compare --policy fcfs --policy edf --replications 2 --workload mixed:duration_s=60 -q "$@"; }
two --metric 'reactive.ttft_s.p[59]0' --metric reactive.ttft_s.p90 >"$dir/pattern"
two --metric reactive.ttft_s.p50 --metric reactive.ttft_s.p90 | cmp -s - "$dir/pattern" || fail "a pattern of metrics"
two --metric 'nope.*' 2>&1 | grep -q "no metric is called so" || fail "a pattern that matches nothing"
exit $bad
