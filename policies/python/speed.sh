#!/bin/sh
# How fast a policy in Python is asked: the 15-minute demo trace (3 reactive and 6 proactive requests a minute) under fcfs in
# C and in Python, best of three: wall clock and processor time of both processes, the start of Python included, and calls of
# `schedule` a second of each. Prints times of this machine: run it when nothing else does, or go by processor time.
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
    once = sleeps = False
class Repeats(Fcfs):
    """fcfs that lets decode iterations repeat themselves."""
    name = "fcfs-repeats"
    def form(self, segments, fused=False, repeats=False):
        return super().form(segments, fused, segments[0].role == "decode")
END
ms() { # "0m1.23s" twice: their sum
    echo "$1 $2" | sed 's/[ms]/ /g' | awk '{ print int(($1 * 60 + $2 + $3 * 60 + $4) * 1000 + 0.5) }'
}
for row in "fcfs=fcfs in C" "python:$p:Fcfs=in Python" "python:$dir/asked.py:Asked=in Python, asked at every call" \
    "python:$dir/asked.py:Repeats=in Python, decodes repeat"; do
    wall=
    cpu=
    for _ in 1 2 3; do
        a=$(date +%s%N)
        used=$(PYTHONPATH=$(dirname "$p") "$x" run --policy "${row%%=*}" --json >"$dir/out"; times >"$dir/t"; tail -n 1 "$dir/t")
        b=$(date +%s%N)
        # shellcheck disable=SC2086
        used=$(ms $used)
        w=$(((b - a) / 1000000))
        [ -n "$wall" ] && [ "$wall" -le $w ] || wall=$w
        [ -n "$cpu" ] && [ "$cpu" -le "$used" ] || cpu=$used
    done
    calls=$(sed -n 's/.*"schedule_rounds":[^0-9]*\([0-9]*\).*/\1/p' "$dir/out")
    echo "${row#*=}: $calls calls in $wall ms ($((calls * 1000 / wall)) a second), $cpu ms of processor" \
        "($((calls * 1000 / cpu)) a second)"
done
