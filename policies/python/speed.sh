#!/bin/sh
# How fast a policy in Python is asked: the 15-minute demo trace (3 reactive and 6 proactive requests a minute) under fcfs in
# C and in Python, best of three; calls of `schedule` a second, the start of Python included, and what was asked by message.
# Prints times of this machine: run it when nothing else does.
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
for row in "fcfs=fcfs in C" "python:$p:Fcfs=in Python" "python:$dir/asked.py:Asked=in Python, asked at every call" \
    "python:$dir/asked.py:Repeats=in Python, decodes repeat"; do
    best=
    for _ in 1 2 3; do
        a=$(date +%s%N)
        PYTHONPATH=$(dirname "$p") "$x" run --policy "${row%%=*}" --json >"$dir/out"
        b=$(date +%s%N)
        ns=$((b - a))
        [ -z "$best" ] || [ $ns -lt "$best" ] && best=$ns
    done
    calls=$(sed -n 's/.*"schedule_rounds":[^0-9]*\([0-9]*\).*/\1/p' "$dir/out")
    echo "${row#*=}: $calls calls of schedule in $((best / 1000000)) ms, $((calls * 1000 / (best / 1000000))) a second"
done
