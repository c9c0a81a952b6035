#!/bin/sh
# A large sweep killed with SIGKILL ten times, at tenths of the way, against one left alone: the
# exports must be equal to the byte. kill-test.sh [SPEC.json [JOBS]]; default: 10,000 runs of
# 60-second traces. Prints what was there at each kill; exit 1 when the exports differ.
set -eu
cd "$(dirname "$0")/.."
x=${BUILD:-build}/xpusim
spec=${1:-experiments/specs/kill-test.json}
jobs=${2:-2}
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT

lines() { # runs in a store; 0 while there is none
    "$x" sweep -o "$1" --export csv 2>/dev/null | awk 'END { print NR > 0 ? NR - 1 : 0 }'
}

"$x" sweep "$spec" -o "$dir/whole.db" --jobs "$jobs" --export csv >"$dir/whole.csv"
total=$(($(wc -l <"$dir/whole.csv") - 1))
kill=1
while [ $kill -le 10 ]; do
    "$x" sweep "$spec" -o "$dir/killed.db" --jobs "$jobs" --quiet &
    pid=$!
    before=$(lines "$dir/killed.db")
    while [ "$(lines "$dir/killed.db")" -lt $((total * kill / 11)) ]; do
        sleep 1
    done
    kill -9 $pid
    wait $pid 2>/dev/null || true
    echo "kill $kill: $(lines "$dir/killed.db") of $total runs in the store, $before before"
    kill=$((kill + 1))
done
"$x" sweep "$spec" -o "$dir/killed.db" --jobs "$jobs" --export csv >"$dir/killed.csv"
cmp "$dir/whole.csv" "$dir/killed.csv"
echo "byte-identical: $(wc -c <"$dir/whole.csv") bytes, $(cksum <"$dir/whole.csv")"
