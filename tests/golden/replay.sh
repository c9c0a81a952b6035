#!/bin/sh
# A decision log replays to the same decisions and the same requests, for every policy; an altered
# one is noticed.
set -eu
cd "$(dirname "$0")/../.."
x=${BUILD:-build}/xpusim
. tests/helpers/policies.sh
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
workload="--workload mixed:reactive_per_min=6,proactive_per_min=12,duration_s=120 --seed 4"
for p in $(policies); do
    load="$(machine_of "$p") $workload"
    # shellcheck disable=SC2086
    "$x" run --policy "$p" $load --decisions "$dir/a.log" --requests "$dir/a.csv" >/dev/null
    # shellcheck disable=SC2086
    "$x" run --replay "$dir/a.log" $load --decisions "$dir/b.log" --requests "$dir/b.csv" >/dev/null
    cmp "$dir/a.log" "$dir/b.log"
    sed -i '/^#/d' "$dir/a.csv" "$dir/b.csv" # one says replay
    cmp "$dir/a.csv" "$dir/b.csv"
done
sed '20d' "$dir/a.log" >"$dir/c.log"
# shellcheck disable=SC2086
if "$x" run --replay "$dir/c.log" $load >/dev/null 2>&1; then
    echo "a log with a line missing replayed without complaint"
    exit 1
fi
echo "all policies replay"
