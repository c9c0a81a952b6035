#!/bin/sh
# Output of commands and shipped files are as the schemas of docs/schemas say, and the checker finds
# breaches. The readers refuse everything that a schema forbids in a machine or model file, too.
set -u
cd "$(dirname "$0")/../.." || exit 2
x=$(cd "${BUILD:-build}" && pwd)/xpusim
s=docs/schemas
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
bad=0

fail() {
    echo "FAILED: $*"
    bad=1
}
checks= # SCHEMA FILE... -- SCHEMA FILE...: judged together, in one process
is() { # schema, files...
    checks="$checks -- $*"
}
n=0
as() { # schema, command...: its JSON; exit 0 or 1
    schema=$1
    shift
    n=$((n + 1))
    "$x" "$@" --json >"$dir/$n.json" 2>"$dir/err"
    test $? -le 1 && test -s "$dir/$n.json" || { fail "$*: $(cat "$dir/err")" && return; }
    echo "$n.json: $*" >>"$dir/commands"
    ln -sf "$n.json" "$dir/$schema.json"
    is "$s/result-$schema.json" "$dir/$n.json"
}

# every shipped file, by its schema
is $s/soc.json hwmodels/soc/*.json
is $s/llm.json hwmodels/llm/*.json
is $s/experiment.json experiments/specs/*.json $(ls experiments/suites/*.json | grep -v archive)
is $s/workload.json traces/workloads/*.json
is $s/machine.json traces/machine/*.json
is $s/gate.json experiments/gate/policies.json
is $s/profile.json experiments/claims/paper-125h.json
is $s/parameters.json experiments/claims/open-*.json
for f in experiments/claims/*.json; do
    case $f in */open-*.json | *125h.json) ;; *) is $s/claims.json "$f" ;; esac
done

# results, by other invocations than the schemas were made of (docs/schemas/make.py)
w="mixed:reactive_per_min=4,proactive_per_min=4,duration_s=120"
as run run --policy vllm-v1 --workload "$w" --soc snapdragon-8elite --llm qwen2.5-1.5b
as run run --policy prema --workload "$w" --seed 9
as run run --policy edf --workload mixed:reactive_per_min=0,duration_s=60
as run run --policy fcfs --workload leader-subagents --llm leader=qwen3-4b --llm subagent=qwen3-0.6b --qoe 2,5 --quantile 42 --below 7
as run-steady run --policy edf --steady --workload mixed:reactive_per_min=2,proactive_per_min=2,duration_s=15000 --seed 2
as run-steady run --policy fcfs --steady --workload mixed:reactive_per_min=0,proactive_per_min=3,duration_s=15000
as bisect bisect --policy vtc --b-policy edf -o "$dir/b.csv" --workload "$w"
as calibrate calibrate --points reference --soc ryzen-ai-xdna2
as plot-list plot list
"$x" measure --backend sim --sim noise=0.01 --seed 5 --size tiny --quiet -o "$dir/rows.csv" || fail "measure"
as measure-fit measure --fit "$dir/rows.csv"
if [ -e "${BUILD:-build}/engines/ggml.so" ]; then
    {
        echo '# xpusim-trace v1'
        echo 'request_id,session_id,turn,class,arrival_s,gap_s,input_tokens,output_tokens,prefix_tokens'
        for i in 0 1 2 3 4; do echo "$i,$i,0,reactive,0.00$i,,$((30 + 9 * i)),$((3 + i)),0"; done
    } >"$dir/t.csv"
    real="drive --clock cpu --llm random-256 --trace $dir/t.csv --quiet"
    # shellcheck disable=SC2086
    {
        as drive $real --policy vllm-v1
        as drive-compare $real --compare --policy edf --policy fcfs --repeat 1
    }
else
    echo "skipped: drive: engine ggml is not there (make engines)"
fi
as compare compare --policy edf --policy pd-static --policy vtc --baseline vtc --replications 2 --workload "$w"
as compare compare --policy edf --policy fcfs --replications 4 --workload "$w" --tune 3 --llm llama-3.1-8b
as compare compare --policy edf --policy fcfs --replications 2 --workload mixed:duration_s=20 --regret
as compare compare --policy edf --replications 1 --workload mixed:reactive_per_min=0,duration_s=60
as compare compare --policy edf --policy fcfs --replications 2 --workload "$w" --uncertainty 17
as compare-select compare --policy edf --policy fcfs --select 0.9 --at-most 20 --workload "$w"
as compare-load compare --policy edf --policy vtc --replications 2 --load 0.4 --workload "$w" --store "$dir/s.db"
as compare-store compare --store "$dir/s.db" --baseline vtc
as compare-load compare --policy edf --policy fcfs --load 0.4 --select 0.8 --at-most 6 --workload "$w"
"$x" compare --policy edf --policy fcfs --replications 8 --seed 2 --workload mixed:reactive_per_min=2,proactive_per_min=0,duration_s=30 --store "$dir/h.db" -q >/dev/null 2>&1
as compare-store compare --store "$dir/h.db" # replications without requests are not run
cat >"$dir/e.json" <<'JSON'
{"name": "e", "base": {"workload": "mixed:duration_s=20", "policy": "fcfs"}, "replications": 2,
 "axes": {"llm": ["llama-3.2-3b", "qwen2.5-1.5b"], "params.device": ["cpu", "igpu"]}}
JSON
is $s/experiment.json "$dir/e.json"
"$x" sweep "$dir/e.json" -o "$dir/e.db" --quiet --export json >"$dir/sweep.json" || fail "sweep"
is $s/result-sweep.json "$dir/sweep.json"
as compare-store compare --store "$dir/e.db"
as compare-store compare --store "$dir/e.db" --by llm
as search search --policy edf --slo 'reactive.ttft_s.mean<=1' --slo 'all.throughput_req_per_min>=1' --replications 2 --precision 1 --workload "$w"
as falsify falsify --policy edf --baseline vtc --budget 8 --replications 1 --confirm 3 --both --workload "$w"
as claims claims B11 B12 B17 D9 D22 --replications 2 # six verdicts of seven
as explain explain --request 1 --policy agent-xpu-v2 --workload "$w"
as explain-job explain --job 20 --policy agent-xpu-v2 --workload leader-subagents
as interference explain --interference --policy agent-xpu-v2 --workload "$w"
as diff diff --policy agent-xpu-v2 --b-policy agent-xpu-v2:beta=1 --workload "$w"
as characterize characterize verify mixed
as list-policy list policy vllm-v1
as list-soc list soc snapdragon-8elite
as list-kernels list kernels --soc core-ultra-9-288v
as list-metric list metric
as list-dataset list dataset
as graphs graphs --p 10,10,10,10 --d 11,11,11,11 --s 20,20,20,20 --chunks 3
as graphs graphs --random 2 --seed 5 --keep-old
as validate validate --points reference --soc core-ultra-9-185h

# the checker and the schemas find breaches
"$x" run --policy fcfs --workload mixed:duration_s=20 --json >"$dir/sound.json"
broken() { # what, python over the tree r, what is said; schema and result, run unless told
    printf '%s\t%s\t%s\t%s\t%s\n' "$1" "$2" "$3" "$s/result-${4:-run}.json" "${5:-$dir/sound.json}" >>"$dir/breaches"
}
broken "a missing key" 'del r["fingerprint"]' 'fingerprint is missing'
broken "a key too many" 'r["audit"]["more"] = 1' '$.audit.more: no such key'
broken "a text for a number" 'r["metrics"]["energy_j"] = "5"' '$.metrics.energy_j: "5" is no'
broken "a number for a flag" 'r["audit"]["clean"] = 1' '$.audit.clean: 1 is no boolean'
of() { # schema, whose last result is damaged so, what is said
    broken "$1 damaged" "$2" "$3" "$1" "$dir/$1.json"
}
of plot-list 'r["figures"][3]["reads"] = 7' '$.figures[3].reads: 7 is no'
of bisect 'del r["left"]' 'left is missing'
of run-steady 'next(iter(r["steady"].values()))["batchs"] = 3' 'batchs: no such key'
of measure-fit 'r["parameters"][0]["value"] = "fast"' '$.parameters[0].value: "fast" is no'
of calibrate 'del r["soc"]' 'soc is missing'
if [ -e "${BUILD:-build}/engines/ggml.so" ]; then
    of drive 'r["metrics"]["energy"] = "none"' '$.metrics.energy: "none" is no'
    of drive-compare 'r["repeats"] = True' '$.repeats: true is no'
fi
# shellcheck disable=SC2086 # words
python3 tests/helpers/schema.py $checks || { fail "not as its schema, of these:"; cat "$dir/commands"; }
python3 tests/helpers/schema_breaches.py <"$dir/breaches" || fail "breaches"

# The readers refuse all that the schema of machines and models forbids, and report each required part
# that is missing.
python3 tests/helpers/schema_readers.py "$x" || fail "schemas and readers differ"

# The schemas fit the commands' present output (the quick ones).
BUILD=$(dirname "$x") python3 $s/make.py --check soc llm run run-steady bisect plot-list measure-fit compare-load compare-store diff explain explain-job list-soc list-kernels || fail "docs/schemas is not up to date"
exit $bad
