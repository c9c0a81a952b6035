#!/bin/sh
# A run must not harm the machine on which it runs. It must not destroy devices, links and other
# files than its output, read for ever, leave workers behind, lose finished work, or fail without a
# word.
set -u
cd "$(dirname "$0")/../.." || exit 2
x=$(cd "${BUILD:-build}" && pwd)/xpusim
dir=$(mktemp -d)
trap 'chmod -R u+w "$dir"; rm -rf "$dir"' EXIT
root=$PWD
cd "$dir" || exit 2
bad=0
fail() { echo "FAILED: $*"; bad=1; }
ends() { # status, text on stderr, command...
    want=$1 text=$2
    shift 2
    "$@" >out 2>err
    status=$?
    [ $status -eq "$want" ] && { [ -z "$text" ] || grep -qF -- "$text" err; } || fail "(exit $status, wanted $want and \"$text\"): $*: $(cat err)"
}
run="$x run --policy fcfs --workload w1:n=2 --quiet"
$run --json >plain.json
"$x" compare --policy fcfs --policy edf --workload w1:n=2 --replications 2 --json --quiet >cmp.json

# ---- writers: a command writes a file named by the user through links and devices ----
writer() { # option and name of the file in "$1"; the command without it follows
    name=$1
    shift
    echo precious >"$name.tmp"
    echo precious >"$name.part"
    echo old >target
    ln -s target "$name"
    "$@" "$name" >out 2>err || fail "$* $name: $(cat err)"
    [ -L "$name" ] || fail "$*: a link became a file"
    [ "$(cat target)" != old ] && [ -s target ] || fail "$*: the link's target did not change"
    [ "$(cat "$name.tmp" "$name.part" | sort -u)" = precious ] || fail "$*: a file beside it is gone"
    rm -f "$name" target
    mkfifo "$name"
    cat "$name" >through &
    reader=$!
    "$@" "$name" >out 2>err || fail "$* to a pipe: $(cat err)"
    wait $reader
    [ -p "$name" ] && [ -s through ] || fail "$*: a pipe was not written through"
    rm -f "$name" "$name".*
    [ -z "$(find . -name "$name.*")" ] || fail "$*: left $(find . -name "$name.*")"
}
cat >gate.json <<'JSON'
{"format": 1, "groups": [{"name": "g", "soc": "core-ultra-5-125h", "llm": "llama-3.2-3b",
 "workload": "w1:n=2", "test": "exact", "seed": 1, "policies": ["fcfs"]}]}
JSON
"$x" gate --baseline gate.json --update --quiet >out 2>err || fail "gate --update: $(cat err)"
writer r.csv $run --requests
writer d.log $run --decisions
writer t.json $run --timeline
writer w.csv "$x" trace gen --workload w1:n=2 --seed 1 -o
writer p.html "$x" report --no-figures cmp.json -o
writer j.xml "$x" gate --baseline gate.json --quiet --junit
writer m.md "$x" gate --baseline gate.json --quiet --markdown
ends 2 "No space left on device" $run --requests /dev/full
ends 2 "No space left on device" $run --decisions /dev/full
[ -c /dev/full ] && [ -c /dev/null ] || fail "a device is no device any more"
ends 0 "" $run --requests /dev/null
for option in --requests --decisions --timeline; do # - is standard output
    $run --json $option through >/dev/null && $run --json $option - >out && [ ! -e ./- ] || fail "$option -: $(ls ./-)"
    grep -v '^# command: ' through >want
    [ -s want ] && ! grep -vxFf out want >/dev/null || fail "$option - prints otherwise than to a file"
done
"$x" trace gen --workload w1:n=2 --seed 1 -o w && "$x" trace gen --workload w1:n=2 --seed 1 -o - | cmp -s w - || fail "trace gen -o -"
rm -f through want w

# ---- Ctrl-C, and an end of the parent alone: nothing half-written stays ----
# shellcheck disable=SC2016
command -v python3 >/dev/null 2>&1 && { python3 - "$x" <<'PY' || bad=1; }
import glob, os, signal, subprocess, sys, time

def within(seconds, true):
    end = time.monotonic() + seconds
    while not true() and time.monotonic() < end:
        time.sleep(0.01)
    return true()

ends = signal.SIGINT, signal.SIGTERM, signal.SIGHUP
for sig in ends: # who starts these tests in the background may ignore some, and a child inherits that
    signal.signal(sig, signal.SIG_DFL)
for sig in ends:
    for all_of_them in True, False:
        p = subprocess.Popen([sys.argv[1], "run", "--policy", "fcfs", "--workload", "mixed:duration_s=3000000", "--decisions", "stopped.log", "--timeline", "stopped.json"],
                             stdout=subprocess.DEVNULL, start_new_session=True)
        begun = within(60, lambda: len(glob.glob("stopped.*")) == 2)
        (os.killpg if all_of_them else os.kill)(p.pid, sig)
        ended = p.wait(60)
        if not begun or ended != -sig or not within(20, lambda: glob.glob("stopped.*") == []):
            print(f"FAILED: {sig.name} to {'all' if all_of_them else 'the parent'}: ended with {ended}, left {glob.glob('stopped.*')}")
            sys.exit(1)
PY

# ---- the end of what can be written is said ----
for args in --help --version "run --help" "list policy" "run --policy fcfs --workload w1:n=2"; do
    # shellcheck disable=SC2086
    "$x" $args >/dev/full 2>err
    [ $? -eq 1 ] && grep -q "cannot write results: No space left" err || fail "$args >/dev/full: $(cat err)"
done
long="$x run --policy fcfs --workload mixed:duration_s=600 --quiet"
for option in --requests --decisions --timeline; do
    (ulimit -f 1 && exec $long $option big) >out 2>err
    status=$?
    [ $status -eq 2 ] && grep -q "big: cannot write: File too large" err || fail "$option over the limit of file size: exit $status, $(cat err)"
    [ -z "$(find . -name 'big*')" ] || fail "$option over the limit left $(find . -name 'big*')"
done

# ---- what cannot run touches nothing, and is bad input ----
echo old >d
ends 2 "does not fit" $run --llm mixtral-8x7b --decisions d --requests d --timeline d
ends 2 "needs an NPU" "$x" run --policy agent-xpu-v2 --soc w1-reference --workload w1:n=2 --decisions d
ends 2 "lacks a device that it is to use; it has npu, igpu, cpu" "$x" run --policy edf:device=gpu --workload w1:n=2 --decisions d
[ "$(cat d)" = old ] || fail "a run that could not start changed --decisions"

# ---- inputs without an end have one ----
mkdir empty
ends 2 "no data in $PWD/empty/: machines, models and data sets are missing; XPUSIM_DATA_DIR names a folder that holds hwmodels and traces" \
    env XPUSIM_DATA_DIR="$PWD/empty" "$x" list soc
ends 0 "" env XPUSIM_DATA_DIR="$root" "$x" list soc
# A table of errors that cannot be read is reported by each command that says how far off a machine
# may be.
mkdir -p broken/hwmodels
for f in "$root"/hwmodels/*; do ln -s "$f" broken/hwmodels/; done
ln -s "$root/traces" "$root/policies" "$root/experiments" broken/
rm broken/hwmodels/residuals.csv
echo soc,family >broken/hwmodels/residuals.csv
export XPUSIM_DATA_DIR="$PWD/broken"
for c in "list soc core-ultra-x7-358h" "new-soc --like core-ultra-7-258v a -o never.json" "validate --points reference --soc rk3588" \
    "characterize --soc core-ultra-x7-358h" "compare --policy fcfs --policy edf --workload w1:n=2 --uncertainty 16 --replications 2"; do
    # shellcheck disable=SC2086
    ends 2 'broken/hwmodels/residuals.csv: no column "device"' "$x" $c
    [ "$(wc -l <out)" -le 1 ] || fail "$c prints results without the table of errors: $(head -n 3 out)" # a head at most
done
[ ! -e never.json ] || fail "a machine was made without the table of errors"
ends 0 "" "$x" run --policy fcfs --workload w1:n=2 --soc core-ultra-x7-358h --json
grep -q 'unknown: .*broken/hwmodels/residuals.csv: no column' out || fail "a run says nothing of the table of errors: $(grep -A3 warnings out)"
unset XPUSIM_DATA_DIR
# A run that takes too long is reported with its reason whole, at any length of the policy's text.
long=edf:device=auto,max_batch=4,token_budget=512,class=rt_first,preempt=iteration,kv=checkpoint,inflight=1,level=device,gap_kv=cache,gap_s=0,ttft_slo_s=2,tbt_slo_s=0.2,proactive_s=600
ends 1 "policy $long: the run was given up after 1 s of CPU time (--time-limit)" \
    "$x" run --policy "$long" --workload mixed:reactive_per_min=2,proactive_per_min=2,duration_s=9e6 --time-limit 1
ends 2 "NUL byte" timeout 900 "$x" run --policy fcfs --trace /dev/zero
ends 2 "NUL byte" timeout 900 "$x" run --policy fcfs --workload w1:n=2 --soc /dev/zero
ends 2 "NUL byte" timeout 900 "$x" run --replay /dev/zero --workload w1:n=2
ends 2 "of the kind" timeout 900 "$x" plot gantt /dev/zero
tr '\0' x </dev/zero | ends 2 "a line of over" timeout 900 "$x" run --policy fcfs --trace /dev/stdin
tr '\0' ' ' </dev/zero | ends 2 "too long" timeout 900 "$x" sweep /dev/stdin -o never.db
yes '{"timestamp": 1}' | ends 2 "input_length" timeout 900 "$x" trace import --format mooncake /dev/stdin -o never.csv

# ---- sweeps: workers end with their parent, finished runs are kept, stores are shared ----
children() { ps -o pid= --ppid "$1" 2>/dev/null | tr -d ' '; }
gone() { # pids...: within ten minutes, as a busy machine may take
    for _ in $(seq 6000); do
        left=0
        for pid in "$@"; do # dead, even if nobody has asked for its status
            case $(ps -o stat= -p "$pid") in '' | Z*) ;; *) left=$pid ;; esac
        done
        [ "$left" = 0 ] && return 0
        sleep 0.1
    done
    fail "worker $left outlives its parent"
}
cat >slow.json <<'JSON'
{"name": "slow", "base": {"workload": "mixed:duration_s=4e6,reactive_per_min=3,proactive_per_min=6"},
 "axes": {"policy": ["fcfs", "edf"]}, "replications": 2}
JSON
for signal in KILL TERM; do
    "$x" sweep slow.json -o slow.db --jobs 2 --quiet 2>err &
    parent=$!
    for _ in $(seq 6000); do # a machine that is busy takes its time
        workers=$(children $parent)
        [ "$(echo "$workers" | wc -w)" -eq 2 ] && break
        sleep 0.1
    done
    [ "$(echo "$workers" | wc -w)" -eq 2 ] || fail "a sweep with two workers has: $workers"
    kill -$signal $parent
    wait $parent 2>/dev/null
    # shellcheck disable=SC2086
    gone $workers
done
cat >many.json <<'JSON'
{"name": "many", "base": {"workload": "mixed:duration_s=120"}, "axes": {"policy": ["fcfs", "edf"]},
 "replications": 300, "metrics": ["reactive.e2e_s.mean"]}
JSON
"$x" sweep many.json -o whole.db --jobs 2 --export csv --quiet >whole.csv || fail "sweep"
"$x" sweep many.json -o killed.db --jobs 2 --quiet &
parent=$!
for _ in $(seq 6000); do # until some are kept, however long a busy machine takes for a run
    kept=$("$x" sweep many.json -o killed.db --dry-run 2>/dev/null | sed 's/.*runs, \([0-9]*\) of.*/\1/')
    [ "${kept:-0}" -gt 0 ] && break
    sleep 0.1
done
kill -KILL $parent 2>/dev/null
wait $parent 2>/dev/null
[ "${kept:-0}" -gt 0 ] || fail "a sweep kept none of its runs"
"$x" sweep many.json -o killed.db --jobs 2 --export csv --quiet | cmp - whole.csv || fail "killed and continued"
sed 's/300/60/' many.json >few.json
"$x" sweep few.json -o few.db --jobs 2 --export csv --quiet >few.csv || fail "sweep of few"
for i in 1 2 3; do
    "$x" sweep few.json -o shared.db --jobs 1 --export csv --quiet >shared$i.csv 2>shared$i.err &
    eval "sharer$i=$!"
done
for i in 1 2 3; do
    eval "wait \$sharer$i" || fail "sweep $i of three on one store: $(cat shared$i.err)"
    cmp shared$i.csv few.csv || fail "sweep $i of three on one store prints something else"
done
[ -z "$(find . -name '*.db-*')" ] || fail "a store that is closed has files beside it: $(find . -name '*.db-*')"
cd "$root" || exit 2
exit $bad
