#!/bin/sh
# A large sweep killed with SIGKILL ten times, spread over most of the way, against one left alone: the
# exports must be equal to the byte; then a comparison of 1,000 runs with --store likewise. kill-test.sh
# [SPEC.json [JOBS]]; default: 10,000 runs of 60-second traces. Prints what was there at each kill;
# exit 1 when something differs.
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

compared() { # in the store
    sqlite3 "$dir/compare.db" 'SELECT count(*) FROM runs' 2>/dev/null || echo 0
}
compare() {
    "$x" compare --policy fcfs --policy agent-xpu-v2 --replications 500 --jobs "$jobs" --quiet --json \
        --workload mixed:reactive_per_min=6,proactive_per_min=9,duration_s=60 "$@"
}
compare >"$dir/whole.json"
n=1
while [ $n -le 10 ]; do
    "$x" compare --policy fcfs --policy agent-xpu-v2 --replications 500 --jobs "$jobs" --quiet --json --store "$dir/compare.db" \
        --workload mixed:reactive_per_min=6,proactive_per_min=9,duration_s=60 >/dev/null &
    pid=$!
    while [ "$(compared)" -lt $((1000 * n / 13)) ]; do
        sleep 0.1
    done
    kill -9 $pid || echo "ended before kill $n"
    wait $pid 2>/dev/null || true
    echo "comparison, kill $n: $(compared) of 1000 runs in the store"
    n=$((n + 1))
done
compare --store "$dir/compare.db" >"$dir/killed.json"
cmp "$dir/whole.json" "$dir/killed.json"
echo "byte-identical: $(wc -c <"$dir/whole.json") bytes, $(cksum <"$dir/whole.json")"
