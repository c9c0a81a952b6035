#!/bin/sh
# Runs skeleton twice (same bytes, clean audit), holds it to the conformance suite (random loads, little
# memory), then compares it with fcfs on the same requests.
set -eu
x=${XPUSIM:-xpusim}
plugin=$(dirname "$0")/skeleton.so
load=mixed:reactive_per_min=2,proactive_per_min=2,duration_s=120
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
for i in 1 2; do # a run with an unclean audit exits 1
    "$x" run --policy "$plugin" --workload "$load" --seed 1 --json >"$dir/$i"
done
cmp "$dir/1" "$dir/2"
"$x" check-policy "$plugin"
"$x" compare --policy fcfs --policy "$plugin" --baseline fcfs --workload "$load" \
    --replications 5 --quiet
echo "skeleton: ok"
