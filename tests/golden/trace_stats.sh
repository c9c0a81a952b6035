#!/bin/sh
# `trace stats` must count the same as a script of its own in the file. Each part of the answer is
# there exactly where the trace has something for it.
set -u
cd "$(dirname "$0")/../.." || exit 2
command -v python3 >/dev/null 2>&1 || { echo "skipped: python3 is not installed"; exit 0; }
x=${BUILD:-build}/xpusim
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
set -- "w1:n=30" "mixed:reactive_per_min=2,proactive_per_min=4,duration_s=1200" \
    "mixed:sessions=1,reactive=mtrag,proactive=proactivebench,duration_s=300" leader-subagents coding-agent
n=0
for w in "$@"; do
    n=$((n + 1))
    "$x" trace gen --workload "$w" --seed 7 -o "$dir/$n.csv" 2>/dev/null || exit 1
done
PYTHONDONTWRITEBYTECODE=1 python3 tests/helpers/trace_stats_check.py "$x" "$dir"/*.csv
