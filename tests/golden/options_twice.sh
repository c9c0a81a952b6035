#!/bin/sh
# Every option of every command changes the output, or nothing where the help says so
# (tests/helpers/options_check.py).
set -eu
cd "$(dirname "$0")/../.."
x=$PWD/${BUILD:-build}/xpusim
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
work=mixed:reactive_per_min=20,proactive_per_min=20,duration_s=12,output_scale=0.3
$x trace gen --workload $work,reactive=mtrag,sessions=1,think_s=1 --seed 3 -o "$dir/a.csv"
$x trace gen --workload $work --seed 4 -o "$dir/b.csv"
$x trace gen --workload mixed:duration_s=20,output_scale=0.02 --seed 4 -o "$dir/tiny.csv"
$x run --policy agent-xpu-v2 --workload $work --seed 3 --decisions "$dir/decisions.log" --quiet >/dev/null
$x run --policy fcfs --workload $work --seed 3 --decisions "$dir/fcfs.log" --quiet >/dev/null
for f in vllm.json sharegpt.json bailian.jsonl; do cp "tests/fuzz/corpus/${f%.*}/sample" "$dir/$f"; done
echo '{"machine": [{"at_s": 5, "memory_mib": 3000}]}' >"$dir/less.json"
echo '{"machine": [{"at_s": 5, "frames_per_s": 60}]}' >"$dir/frames.json"
python3 tests/helpers/options_check.py "$x" "$dir"
