#!/bin/sh
# Policies that want to know what they must not (tests/cheats): in its jail each cheat gets nothing; outside each gets something,
# so that none is a cheat in name only. What needs no jail is refused in both. Results are the same in and outside.
set -u
cd "$(dirname "$0")/../.." || exit 2
build=${BUILD:-build}
x=$(cd "$build" && pwd)/xpusim
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
bad=0
load="mixed:reactive_per_min=6,proactive_per_min=12,duration_s=60"
fail() {
    echo "FAILED: $*"
    bad=1
}

python3 -c 'import sys; sys.exit(sys.version_info < (3, 9))' 2>/dev/null || {
    echo "skipped: no python3 of 3.9 or newer, so no cheats in Python"
    exit 0
}
mkdir "$dir/parent" "$dir/parent/folder" "$dir/policy"
"$x" trace gen --workload "$load" --seed 5 -o "$dir/parent/trace.csv" >/dev/null || fail "no trace"
cp "$dir/parent/trace.csv" "$dir/parent/earlier.csv"
echo 'LENGTHS = [1, 2, 3]' >"$dir/parent/folder/answers.py"
sed "s|@FOLDER@|$dir/parent|" tests/cheats/cheats.py >"$dir/policy/cheats.py"
look() { # what standard error says of each cheat
    XPUSIM_TEST_SECRET=secret "$x" run --policy "python:$dir/policy/cheats.py:Cheat" --trace "$dir/parent/trace.csv" --seed 5 \
        --trouble '' 2>&1 >/dev/null | grep -E '^[a-z_]+: (GOT|nothing)'
}
look >"$dir/inside"
XPUSIM_JAIL=off look >"$dir/outside"

n=$(wc -l <"$dir/inside")
[ "$n" -ge 46 ] && [ "$n" -eq "$(wc -l <"$dir/outside")" ] || fail "$n cheats were tried"
grep ': GOT' "$dir/inside" | while read -r line; do echo "FAILED: in the jail $line"; done
grep -q ': GOT' "$dir/inside" && bad=1
# What gets nothing outside either is no test of the jail here: of these some need a privilege or a file that is not everywhere.
grep ': nothing' "$dir/outside" | grep -vE '^(seed|oracle): ' >"$dir/weak"
while IFS=: read -r name why; do
    case $name in
    attributes | performance_counters | keyring | descriptors_of_parent | process_vm_readv | ptrace | parent_memory | home | host_name | the_package | compiled_package | slow_parent)
        echo "note: $name gets nothing outside the jail either:$why" ;;
    *) fail "outside the jail $name gets nothing:$why" ;;
    esac
done <"$dir/weak"
grep -qE '^(seed|oracle): GOT' "$dir/outside" && fail "the contract gives: $(grep -E '^(seed|oracle): GOT' "$dir/outside")"

# The same bytes in and outside, of a class and of a program.
for policy in "python:policies/python/examples/edf.py:Edf" "python:policies/python/examples/npu_serial.py:NpuSerial"; do
    for jail in on off; do
        XPUSIM_JAIL=$jail "$x" run --policy "$policy" --workload "$load" --seed 3 --json --decisions "$dir/$jail.log" \
            >"$dir/$jail.json" 2>"$dir/$jail.err" || fail "$policy, jail $jail: $(cat "$dir/$jail.err")"
    done
    cmp "$dir/on.json" "$dir/off.json" && cmp "$dir/on.log" "$dir/off.log" || fail "$policy: the jail changes results"
done

# Wall-clock time is seen and changes nothing: a class that waits gets the same simulated time.
cat >"$dir/policy/slow.py" <<'END'
import time
from xpusim.helpers import form
import sys
sys.path.insert(0, "@EXAMPLES@")
from fcfs import Fcfs as Base


class Slow(Base):
    """Waits before it decides."""
    name = "slow"

    def schedule(self):
        if self.epoch < 20:
            time.sleep(0.02)
        super().schedule()
END
sed -i "s|@EXAMPLES@|$dir/policy|" "$dir/policy/slow.py"
cp policies/python/examples/fcfs.py "$dir/policy/fcfs.py"
for p in "$dir/policy/slow.py:Slow" "$dir/policy/fcfs.py:Fcfs"; do
    "$x" run --policy "python:$p" --workload "$load" --seed 3 --requests "$dir/r.csv" >"$dir/out" 2>&1 || fail "$p: $(cat "$dir/out")"
    grep -v '^#' "$dir/r.csv" >"$dir/$(basename "$p" | tr : .).csv"
done
cmp "$dir/slow.py.Slow.csv" "$dir/fcfs.py.Fcfs.csv" || fail "time that a policy spends changes results"
exit $bad
