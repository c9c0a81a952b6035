#!/bin/sh
# How fast a policy in Python is asked: the 15-minute demo trace (3 reactive and 6 proactive requests a minute) under fcfs in
# C and in Python, best of three: wall clock and processor time of both processes, and calls of `schedule` a second of each.
# Python is started twice, to be asked what the policy is and to run it; that is a row of its own, and calls a second are
# told with it and without. The last row is the least that a message may take here: two processes that only answer each
# other, in lines as long as these. Prints times of this machine: run it when nothing else does, or go by processor time.
set -eu
cd "$(dirname "$0")/../.."
x=${BUILD:-build}/xpusim
case $x in /*) ;; *) x=$PWD/$x ;; esac
p=$PWD/policies/python/examples/fcfs.py
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
cat >"$dir/asked.py" <<'END'
from fcfs import Fcfs
class Asked(Fcfs):
    """fcfs that is asked at every call of schedule, as the contract says."""
    name = "fcfs-asked"
    once = sleeps = steady = False
class Once(Fcfs):
    """fcfs that is asked again while its decode iterations repeat."""
    name = "fcfs-once"
    steady = False
END
ms() { # "0m1.23s" twice: their sum
    echo "$1 $2" | sed 's/[ms]/ /g' | awk '{ print int(($1 * 60 + $2 + $3 * 60 + $4) * 1000 + 0.5) }'
}
best() { # policy, option..: wall clock and processor time in ms, calls
    wall=
    cpu=
    for _ in 1 2 3; do
        a=$(date +%s%N)
        used=$(PYTHONPATH=$(dirname "$p") "$x" run --policy "$@" --json >"$dir/out"; times >"$dir/t"; tail -n 1 "$dir/t")
        b=$(date +%s%N)
        # shellcheck disable=SC2086
        used=$(ms $used)
        w=$(((b - a) / 1000000))
        [ -n "$wall" ] && [ "$wall" -le $w ] || wall=$w
        [ -n "$cpu" ] && [ "$cpu" -le "$used" ] || cpu=$used
    done
    calls=$(sed -n 's/.*"schedule_rounds":[^0-9]*\([0-9]*\).*/\1/p' "$dir/out")
}
rate() { echo $((calls * 1000 / ($1 > 0 ? $1 : 1))); }
best "python:$p:Fcfs" --workload mixed:reactive_per_min=60,proactive_per_min=1,duration_s=2
start=$wall
echo "start of Python, twice, and of the program: $wall ms, $cpu ms of processor"
for row in "fcfs=fcfs in C" "python:$dir/asked.py:Once=in Python" "python:$dir/asked.py:Asked=in Python, asked at every call" \
    "python:$p:Fcfs=in Python, decodes repeat"; do
    best "${row%%=*}"
    [ "$row" = "${row#python}" ] || without=", $(rate $((wall - start))) without the start"
    echo "${row#*=}: $calls calls in $wall ms ($(rate "$wall") a second${without:-}), $cpu ms of processor ($(rate "$cpu") a second)"
done
"${XPUSIM_PYTHON:-python3}" - <<'END'
import os, time
there, back = os.pipe(), os.pipe()
if os.fork() == 0:
    os.close(there[1])
    while os.read(there[0], 8192):
        os.write(back[1], b"x" * 77)
    os._exit(0)
n, best = 10000, 1e9
for _ in range(3):
    t = time.perf_counter()
    for _ in range(n):
        os.write(there[1], b"x" * 268)
        os.read(back[0], 8192)
    best = min(best, time.perf_counter() - t)
print("two processes that only answer each other: %d times a second (%.1f us)" % (n / best, best / n * 1e6))
END
