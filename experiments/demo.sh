#!/bin/sh
# What `make demo` shows: the papers' mixed workload, 3 reactive and 6 proactive requests a minute for
# 15 minutes, real token lengths, on a Core Ultra 5 125H, for both models, on common random numbers.
# Then the same, load by load, request by request and on a timeline, as one page to look at.
set -eu
cd "$(dirname "$0")/.."
build=${BUILD:-build}
x=$build/xpusim
dir=$build/demo
w=mixed:reactive_per_min=3,proactive_per_min=6,duration_s=900
traces=${DEMO_TRACES:-20}
mkdir -p "$dir"
rm -f "$dir/runs.db"
for model in llama-3.2-3b llama-3.1-8b; do
    echo
    echo "### $model"
    set -- --soc core-ultra-5-125h --llm $model --workload $w \
        --policy openvino-cb --policy openvino-cb:variant=whole --policy openvino-cb:variant=vllm \
        --policy fcfs --policy agent-xpu-v2 --baseline openvino-cb --replications "$traces" --seed 1
    "$x" compare "$@" --store "$dir/runs.db"
    "$x" compare "$@" --store "$dir/runs.db" --json --quiet >"$dir/$model.json" # read back, not run again
done
if ! command -v gnuplot >/dev/null 2>&1; then
    echo "no page: gnuplot is missing (Debian: gnuplot-nox)"
    exit 0
fi
"$x" compare --policy openvino-cb --policy agent-xpu-v1 --policy agent-xpu-v2 --baseline openvino-cb --workload $w \
    --load 0.3,0.6,0.9,1.2 --replications $((traces * 3 / 10)) --json --quiet >"$dir/load.json"
for p in openvino-cb agent-xpu-v2; do
    "$x" run --policy $p --workload $w --requests "$dir/$p.csv" --timeline "$dir/timeline.json.gz" --quiet >/dev/null
done
for p in openvino-cb fcfs agent-xpu-v1 agent-xpu-v2; do
    "$x" explain --interference --policy $p --workload $w --json >"$dir/$p-causes.json"
done
set -- --policy openvino-cb --policy fcfs --policy agent-xpu-v2 --workload $w
"$x" view "$@" --json >"$dir/view.json"
"$x" list kernels --json >"$dir/kernels.json"
"$x" characterize --csv >"$dir/studies.csv"
"$x" graphs --p 10,10,10,10 --d 11,11,11,11 --s 20,20,20,20 --chunks 2 --gantt --json >"$dir/graphs.json"
"$x" report --live "$dir/view.json" "$dir/llama-3.2-3b.json" "$dir/llama-3.1-8b.json" "$dir/load.json" "$dir/agent-xpu-v2.csv" \
    "$dir/openvino-cb.csv" "$dir/timeline.json.gz" "$dir/openvino-cb-causes.json" "$dir/fcfs-causes.json" \
    "$dir/agent-xpu-v1-causes.json" "$dir/agent-xpu-v2-causes.json" "$dir/kernels.json" \
    "$dir/studies.csv" "$dir/graphs.json" --from 60 --to 120 -o "$dir/report.html"
echo
echo "The same to look at, click and compare, with figures: $dir/report.html"
if [ -f "$build/xpusim.wasm" ]; then # a page of its own, so that each is below 1 MB
    "$x" view "$@" --recompute -o "$dir/compute.html" --quiet
    echo "A page that computes, built by make wasm: drag the load: $dir/compute.html"
fi
echo "A timeline for Perfetto (ui.perfetto.dev): $dir/timeline.json.gz"
