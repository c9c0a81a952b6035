#!/bin/sh
# compare --uncertainty: the same bytes from one worker and two; and a flip point, taken from its
# output, is one: the order holds on one side of it and has turned on the
# other, when plain comparisons are run there with --set.
set -u
cd "$(dirname "$0")/../.." || exit 2
x=$(cd "${BUILD:-build}" && pwd)/xpusim
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
bad=0
fail() {
    echo "FAILED: $*"
    bad=1
}
metric=energy_active_j_per_token
base="compare --policy openvino-cb --policy agent-xpu-v2 --metric $metric --quiet --json
    --workload mixed:reactive_per_min=3,proactive_per_min=6,duration_s=300"
# shellcheck disable=SC2086
for jobs in 1 2; do
    "$x" $base --replications 4 --uncertainty 64 --jobs $jobs >"$dir/$jobs.json" || fail "exit $?"
done
cmp -s "$dir/1.json" "$dir/2.json" || fail "one worker and two say different things"

# The first factor with a flip point: its path, where the order holds and where it has turned.
awk -F'"' '/"factors"/ { in_factors = 1 }
    in_factors && /"path":/ { path = $4 }
    in_factors && /"holds_at":/ { split($3, v, /[ \t,:]+/); holds = v[2] }
    in_factors && /"turns_at":/ { split($3, v, /[ \t,:]+/); if (v[2] != "null") { print path, holds, v[2]; exit } }
    ' "$dir/1.json" >"$dir/flip"
read -r path holds turns <"$dir/flip" || fail "no factor turns the order of energy"
difference() { # value: sign of the mean difference of three replications
    # shellcheck disable=SC2086
    "$x" $base --replications 3 --set "$path=$1" |
        sed -n "/\"$metric\"/,/}/s/.*\"diff\":[^-0-9]*\(-\{0,1\}\).*/\1+/p" | tail -1 | cut -c1
}
test "$(difference "$holds")" = - || fail "$path: the order does not hold at $holds"
test "$(difference "$turns")" = + || fail "$path: the order has not turned at $turns"

"$x" compare --policy fcfs --policy edf --uncertainty 5 >/dev/null 2>"$dir/err" && fail "5 machines taken"
grep -q -- '--uncertainty' "$dir/err" || fail "5 machines: $(cat "$dir/err")"
exit $bad
