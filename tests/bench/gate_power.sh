#!/bin/sh
# How often the gate's `fresh` test finds a true worsening, and how often it finds one that is not
# there: TRIALS (default 100) baselines, each judged against unchanged code and against a changed
# configuration, with fresh seeds on every side and the default number of replications.
# The change: a share of the iGPU's time taken away, chosen so that P90 reactive latency rises by
# 3 % (measured first, on common seeds). About 30 s a trial on two cores.
#   BUILD=build sh tests/bench/gate_power.sh [TRIALS]
set -eu
cd "$(dirname "$0")/../.."
x=${BUILD:-build}/xpusim
trials=${1:-100}
change=sim.graphics.reserve_time_frac=0.028
workload="mixed:reactive_per_min=3,proactive_per_min=3,duration_s=1800"
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT

spec() { # test, seed, more keys
    printf '{"format": 1, "groups": [{"name": "power", "soc": "core-ultra-5-125h",
"llm": "llama-3.2-3b", "workload": "%s", "set": [], "test": "%s", "seed": %s, %s
"policies": ["agent-xpu-v2"]}]}\n' "$workload" "$1" "$2" "$3"
}
changed() { sed "s/\"set\":[[:space:]]*\[\]/\"set\": [\"$change\"]/" "$1"; }

spec exact 1 '"replications": 2000,' >"$dir/true.json"
"$x" gate --baseline "$dir/true.json" --update --quiet >/dev/null 2>&1
changed "$dir/true.json" >"$dir/true2.json"
echo "true effect of $change, 2000 pairs:"
"$x" gate --baseline "$dir/true2.json" --quiet --all | grep -v '^$' || true

# Exit 0 passed, 1 alarm; anything else ends the experiment.
gate() { # file, seed, output
    status=0
    "$x" gate --baseline "$1" --seed "$2" --quiet >"$3" || status=$?
    [ $status -le 1 ] || exit $status
}

caught=0
caught_p90=0
false_alarms=0
k=0
while [ "$k" -lt "$trials" ]; do
    k=$((k + 1))
    spec fresh $((100000 + k)) '' >"$dir/a.json"
    "$x" gate --baseline "$dir/a.json" --update --quiet >/dev/null 2>&1
    changed "$dir/a.json" >"$dir/b.json"
    gate "$dir/a.json" $((200000 + k)) "$dir/same"
    if [ $status -eq 1 ]; then
        false_alarms=$((false_alarms + 1))
        echo "trial $k: false alarm"
        cat "$dir/same"
    fi
    gate "$dir/b.json" $((300000 + k)) "$dir/worse"
    if [ $status -eq 1 ]; then
        caught=$((caught + 1))
    fi
    if grep -q 'REGRESSION.*reactive.e2e_s.p90' "$dir/worse"; then
        caught_p90=$((caught_p90 + 1))
    fi
    echo "after $k trials: change caught $caught, by the P90 row itself $caught_p90; false alarms $false_alarms"
done
