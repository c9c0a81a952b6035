#!/bin/sh
# A large sweep killed with SIGKILL ten times, spread over most of the way, against one left alone: the
# exports must be equal to the byte. kill-test.sh [SPEC.json [JOBS]]; default: 10,000 runs of
# 60-second traces. Prints what was there at each kill; exit 1 when the exports differ.
set -eu
cd "$(dirname "$0")/.."
x=${BUILD:-build}/xpusim
spec=${1:-experiments/specs/kill-test.json}
jobs=${2:-2}
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT

runs() { # in the store
    "$x" sweep "$spec" -o "$dir/killed.db" --dry-run | sed -n 's/.*, \([0-9]*\) of them in the store/\1/p'
}

"$x" sweep "$spec" -o "$dir/whole.db" --jobs "$jobs" --export csv >"$dir/whole.csv"
total=$(($(wc -l <"$dir/whole.csv") - 1))
n=1
while [ $n -le 10 ]; do
    before=$(runs)
    "$x" sweep "$spec" -o "$dir/killed.db" --jobs "$jobs" --quiet &
    pid=$!
    while [ "$(runs)" -lt $((total * n / 13)) ]; do
        sleep 0.2
    done
    kill -9 $pid || echo "ended before kill $n"
    wait $pid 2>/dev/null || true
    echo "kill $n: $(runs) of $total runs in the store, $before before"
    n=$((n + 1))
done
"$x" sweep "$spec" -o "$dir/killed.db" --jobs "$jobs" --export csv >"$dir/killed.csv"
cmp "$dir/whole.csv" "$dir/killed.csv"
echo "byte-identical: $(wc -c <"$dir/whole.csv") bytes, $(cksum <"$dir/whole.csv")"
