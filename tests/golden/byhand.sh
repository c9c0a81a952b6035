#!/bin/sh
# Output of commands is compared with numbers computed by hand.
set -u
cd "$(dirname "$0")/../.." || exit 2
x=${BUILD:-build}/xpusim
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
bad=0
fail() {
    echo "FAILED: $*"
    bad=1
}

# With two units of time a character, 0, 2, 4 are within block 1 (0 to 5), and 6 to 100 within block
# 2 (5 to 101). These are 3 and 48 characters.
"$x" graphs --p 5,96 --d 5,96 --s 1,1 --chunks 1 --strategy unified-g1 --gantt >"$dir/out" || fail graphs
grep -qE '^  G1 compute\|1{3}2{48}$' "$dir/out" || fail "bars of a schedule: $(cat "$dir/out")"

# Where every request shows the difference, the least trace is one request of one token in and out.
"$x" bisect --policy fcfs --b-policy npu-serial --workload w1:n=3 -o "$dir/least.csv" >/dev/null || fail bisect
[ "$(grep -c '^[0-9]' "$dir/least.csv")" -eq 1 ] || fail "more than one request is left: $(cat "$dir/least.csv")"
[ "$(sed -n '$p' "$dir/least.csv" | cut -d, -f7,8)" = 1,1 ] || fail "not of one token: $(cat "$dir/least.csv")"

# Either way the seeds are the same. Where nothing is changed the one loses as much as the other
# gains. Under FIFO reactive requests wait behind proactive ones, and hpf lets them pass.
"$x" falsify --policy fcfs --baseline hpf --both --workload mixed:duration_s=60,reactive_per_min=6 --over machine \
    --budget 8 --replications 1 --confirm 3 --json >"$dir/out" || fail "falsify --both"
python3 - "$dir/out" <<'PY' || bad=1
import json, sys
given = [s["given"] for s in json.load(open(sys.argv[1]))["searches"]]
a, b = (g["ratio"] for g in given)
if not (given[0]["n"] == 3 and a > 1.1 and abs(a * b - 1) < 1e-9):
    sys.exit("FAILED: fcfs takes %s times as long as hpf, hpf %s times as long as fcfs" % (a, b))
PY
exit $bad
