#!/bin/sh
# Policies of tests/cheats want to know forbidden things. In its jail each cheat gets nothing.
# Outside each gets something, so that none is a cheat in name only. Both refuse cheats that need no
# jail. Results are the same in and outside.
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

few() { # a suite of one point and four runs
    cat <<'END'
{"name": "few", "suite": {"about": "a few short runs", "references": ["fcfs"], "unscored": []}, "base": {"seed": 1},
 "rows": [{"point": "one", "soc": "core-ultra-5-125h", "llm": "llama-3.2-3b",
           "workload": "mixed:reactive_per_min=6,proactive_per_min=12,duration_s=60"}],
 "replications": 4, "metrics": ["reactive.e2e_s.mean"]}
END
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
# A cheat that gets nothing outside either is no test of the jail here. Some of these need a
# privilege or a file that is not everywhere.
grep ': nothing' "$dir/outside" | grep -vE '^(seed|oracle): ' >"$dir/weak"
while IFS=: read -r name why; do
    case $name in
    attributes | performance_counters | keyring | descriptors_of_parent | process_vm_readv | ptrace | parent_memory | home | host_name | the_package | compiled_package | slow_parent)
        echo "note: $name gets nothing outside the jail either:$why" ;;
    *) fail "outside the jail $name gets nothing:$why" ;;
    esac
done <"$dir/weak"
grep -qE '^(seed|oracle): GOT' "$dir/outside" && fail "the contract gives: $(grep -E '^(seed|oracle): GOT' "$dir/outside")"

if grep -q __asan_init "$x"; then
    echo "skipped: a plug-in in a process of its own has less memory than the address sanitizer wants"
else
    # A plug-in is tested like this, too. The jail of plug-ins (XPUSIM_JAIL=on) takes it out of the
    # simulator's process.
    secret=$(grep -v '^#' "$dir/parent/trace.csv" | awk -F, 'NR == 1 { for (i = 1; i <= NF; i++) if ($i == "output_tokens") c = i }
        NR > 1 && NR < 5 { printf "-DSECRET_%d=%d ", NR - 1, $c }')
    # shellcheck disable=SC2086
    ${CC:-cc} -std=c17 -O1 -fPIC -shared -I. $secret "-DFOLDER=\"$dir/parent\"" -o "$dir/policy/cheats.so" tests/cheats/cheats.c ||
        fail "cheats.c"
    # Where the program links its library as a shared object, as `make mutants` does, all of its symbols are there.
    linked='^$'
    ldd "$x" 2>/dev/null | grep -q libxpusim && linked='symbols: GOT'
    gots() { grep -h ': GOT' "$@" | grep -v "$linked"; }
    look_so() { # jail, parameters
        XPUSIM_JAIL=$1 XPUSIM_TEST_SECRET=secret "$x" run --policy "$dir/policy/cheats.so$2" --trace "$dir/parent/trace.csv" --seed 5 \
            --trouble '' 2>&1 >/dev/null
    }
    look_so on '' | grep -E '^[a-z_]+: (GOT|nothing)' >"$dir/inside"
    look_so off '' | grep -E '^[a-z_]+: (GOT|nothing)' >"$dir/outside"
    n=$(wc -l <"$dir/inside")
    [ "$n" -ge 19 ] && [ "$n" -eq "$(wc -l <"$dir/outside")" ] || fail "$n cheats of a plug-in were tried"
    gots "$dir/inside" >"$dir/got"
    [ ! -s "$dir/got" ] || fail "in the jail of plug-ins: $(cat "$dir/got")"
    grep ': nothing' "$dir/outside" >"$dir/weak"
    while IFS=: read -r name why; do
        case $name in
        oracle | symbols) ;; # the contract and the link refuse these anywhere
        read_parent | trace_parent | parent_memory) echo "note: $name gets nothing outside the jail either:$why" ;;
        *) fail "outside the jail of plug-ins $name gets nothing:$why" ;;
        esac
    done <"$dir/weak"
    look_so on :forge=true | grep -q 'asked for what there is not' || fail "a forged request is not found out"
    look_so on :crash=true | grep -q 'was killed by signal 11' || fail "a crash in the jail is not named"

    # A plug-in decides the same in its jail: all of edf and of llm-npu (passes ahead), with hooks,
    # steady iterations and notes.
    for twin in edf llm-npu; do
        so=$dir/policy/$twin.so
        cat >"$dir/policy/twin.c" <<END
#include "policies/$twin.c"
static struct policy_ops mine;
const struct policy_ops *xpusim_policy(void)
{
    mine = policy_$(echo $twin | tr - _)_ops;
    mine.name = "$twin-plugin";
    return &mine;
}
END
        ${CC:-cc} -std=c17 -D_POSIX_C_SOURCE=200809L -ffp-contract=off -O2 -fPIC -shared -I. -o "$so" "$dir/policy/twin.c" ||
            fail "$twin.c as a plug-in"
        # Some stops are of passes whose launch was not waited for. Kernels ahead are waited for.
        some='preempt=layer,kv=recompute inflight=2'
        [ $twin = edf ] || some=order=chunks
        for some in $some; do
            for jail in on off; do
                XPUSIM_JAIL=$jail "$x" run --policy "$so:$some" --workload "$load" --seed 3 --json --decisions "$dir/$jail.log" \
                    >"$dir/$jail.json" 2>"$dir/$jail.err" || fail "$twin.so, jail $jail: $(cat "$dir/$jail.err")"
                XPUSIM_JAIL=$jail "$x" run --policy "$so" --workload "$load" --seed 4 --json >"$dir/$jail.steady" 2>&1 || fail "$twin.so"
            done
            cmp "$dir/on.json" "$dir/off.json" && cmp "$dir/on.log" "$dir/off.log" && cmp "$dir/on.steady" "$dir/off.steady" ||
                fail "$twin.so:$some: the jail changes results"
        done
    done

    # Runs of one process share the start of it and nothing else.
    few >"$dir/suite.json"
    ${CC:-cc} -std=c17 -O1 -fPIC -shared -I. -o "$dir/policy/leave.so" tests/cheats/leave.c || fail "leave.c"
    "$x" arena judge "$dir/policy/leave.so" --suite "$dir/suite.json" --jobs 1 -q --json >"$dir/out" 2>"$dir/err"
    grep -E '^[0-9]+ [a-z]+: ' "$dir/err" >"$dir/left"
    [ "$(cut -d' ' -f1 "$dir/left" | sort | uniq -c | awk '{ print $1 }' | sort -n | tr '\n' ' ')" = '5 15 ' ] ||
        fail "of a plug-in one run is not started and three forked: $(cat "$dir/left" "$dir/err")"
    grep ': GOT' "$dir/left" | while read -r line; do echo "FAILED: of a run before $line"; done
    grep -q ': GOT' "$dir/left" && bad=1
    ${CC:-cc} -std=c17 -O1 -DIN_ONE_PROCESS -I. -o "$dir/leave" tests/cheats/leave.c && "$dir/leave" 2>"$dir/weak"
    [ "$(grep -c ': GOT' "$dir/weak")" -eq 5 ] || fail "in one process these are no traces: $(cat "$dir/weak")"
    for policy in "$dir/policy/edf.so" edf; do # edf in forks, and in this process
        "$x" arena judge "$policy" --suite "$dir/suite.json" --jobs 1 -q --json 2>"$dir/err" | grep -E '"(score|gain|low|high)"' \
            >"$dir/$(basename "$policy").score"
    done
    grep -q score "$dir/edf.score" && cmp "$dir/edf.so.score" "$dir/edf.score" || fail "edf as a plug-in has another score: $(cat "$dir/err")"

    # No candidate is judged that could look: the arena refuses each that it cannot confine.
    for policy in "$dir/policy/edf.so" "python:policies/python/examples/edf.py:Edf"; do
        XPUSIM_JAIL=off "$x" arena judge "$policy" --replications 2 >"$dir/out" 2>"$dir/err"
        [ $? -eq 2 ] && grep -q 'cannot be confined' "$dir/err" || fail "arena judges $policy without a jail: $(cat "$dir/err")"
    done
    "$x" arena judge "$dir/policy/cheats.so" --suite agents-2026.1 --replications 2 --json >"$dir/out" 2>"$dir/err"
    gots "$dir/err" "$dir/out" >"$dir/got"
    [ ! -s "$dir/got" ] || fail "the arena lets a plug-in look: $(head -3 "$dir/got")"
    grep -q 'own_maps: nothing' "$dir/err" "$dir/out" || fail "the arena does not run the plug-in: $(head -3 "$dir/err")"
fi

# Runs of one process share an interpreter and nothing else. One leaves something, in memory or by a
# pipe, and the next does not find it.
sed "s|@FOLDER@|$dir/parent|" tests/cheats/leave.py >"$dir/policy/leave.py"
cp policies/python/examples/fcfs.py "$dir/policy/fcfs.py"
few >"$dir/suite.json"
judge() { # class, more options
    class=$1
    shift
    "$x" arena judge "python:$dir/policy/leave.py:$class" --suite "$dir/suite.json" --jobs 1 -q --json "$@" >"$dir/out" 2>"$dir/err"
}
judge Leave
grep -E '^(started|forked) [a-z_]+: ' "$dir/err" >"$dir/left"
n=$(wc -l <"$dir/left")
[ "$n" -eq 40 ] && [ "$(grep -c '^forked' "$dir/left")" -eq 30 ] || fail "$n traces of runs were looked for: $(head -3 "$dir/err")"
grep ': GOT' "$dir/left" | while read -r line; do echo "FAILED: of a run before $line"; done
grep -q ': GOT' "$dir/left" && bad=1
# In one process each is a trace.
(cd "$dir/policy" && PYTHONPATH="$OLDPWD/policies/python" ${XPUSIM_PYTHON:-python3} leave.py) 2>&1 | grep ': nothing' |
    while read -r line; do echo "FAILED: in one process $line"; done >"$dir/weak"
[ ! -s "$dir/weak" ] || fail "no trace: $(cat "$dir/weak")"
judge Abort --words
grep -q 'was killed by signal 6' "$dir/out" || fail "the crash of a fork is not named: $(grep failure "$dir/out")"
judge Late --words
grep -q 'gave no answer within 1 s' "$dir/out" || fail "a fork that hangs is not ended: $(grep failure "$dir/out")"
for class in Served Raised; do
    judge $class --words
    grep -q 'a fork of the zygote' "$dir/out" "$dir/err" || fail "$class: runs are not forked: $(head -3 "$dir/err")"
done

# Bytes are equal in and outside, for a class and for a program.
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
for p in "$dir/policy/slow.py:Slow" "$dir/policy/fcfs.py:Fcfs"; do
    "$x" run --policy "python:$p" --workload "$load" --seed 3 --requests "$dir/r.csv" >"$dir/out" 2>&1 || fail "$p: $(cat "$dir/out")"
    grep -v '^#' "$dir/r.csv" >"$dir/$(basename "$p" | tr : .).csv"
done
cmp "$dir/slow.py.Slow.csv" "$dir/fcfs.py.Fcfs.csv" || fail "time that a policy spends changes results"
exit $bad
