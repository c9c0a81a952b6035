#!/bin/sh
# The metric gate compares this build's policy matrix with the committed baseline. The report of a
# worsened machine must be as recorded (gate_alarms.sh has the gate's other words). If a policy
# changes on purpose, `make golden-update` shows the rows and records them.
set -u
cd "$(dirname "$0")/../.." || exit 2
x=$(cd "${BUILD:-build}" && pwd)/xpusim
. tests/helpers/policies.sh
matrix=experiments/gate/policies.json
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
bad=0
fail() {
    echo "FAILED: $*"
    bad=1
}

# Nothing runs under a sanitizer: numbers are those of the usual build, and a small matrix of its
# own is below.
if [ -n "${SANITIZED:-}" ]; then
    echo "skipped: under a sanitizer: the recorded matrix, whose numbers the usual build compares"
else
    "$x" gate --baseline $matrix || fail "this build does not pass $matrix (make golden-update records changes)"
fi
for p in $(policies); do
    grep -q "\"policy\":[[:space:]]*\"$p\"" $matrix || fail "$p has no row in $matrix: add it to its groups, then make golden-update"
done

# A small matrix of its own.
cat >"$dir/small.json" <<'END'
{"format": 1, "groups": [
  {"name": "small", "soc": "core-ultra-5-125h", "llm": "llama-3.2-3b", "test": "exact", "seed": 1,
   "workload": "mixed:reactive_per_min=6,proactive_per_min=6,duration_s=60", "set": [],
   "policies": ["fcfs", "agent-xpu-v2"]}]}
END
"$x" gate --baseline "$dir/small.json" --update >"$dir/out" 2>/dev/null || fail "recording"
# Without a tenth of the iGPU the gate reports worse, exit 1, and the table as recorded.
sed 's/"set":[[:space:]]*\[\]/"set": ["sim.graphics.reserve_time_frac=0.1"]/' "$dir/small.json" >"$dir/slow.json"
"$x" gate --baseline "$dir/slow.json" --all --markdown "$dir/slow.md" --junit "$dir/slow.xml" >"$dir/slow.txt"
[ $? -eq 1 ] || fail "a slower iGPU passes"
sed "s#$dir/##" "$dir/slow.md" >>"$dir/slow.txt"
if ! cmp -s "$dir/slow.txt" tests/golden/gate.txt; then
    diff -u tests/golden/gate.txt "$dir/slow.txt"
    if [ "${1:-}" = --update ]; then cp "$dir/slow.txt" tests/golden/gate.txt; else fail "the report differs"; fi
fi
# The other program is asked for the same metrics, also for those that a run has only when asked.
asked='[{"name": "all.e2e_s.p97.5", "better": "lower"}, {"name": "all.e2e_s.below:4", "better": "higher"}, {"name": "all.qoe.mean", "better": "higher"}]'
sed "s/\"set\":[[:space:]]*\\[\\]/\"metrics\": $asked/" "$dir/small.json" >"$dir/asked.json"
"$x" gate --baseline "$dir/asked.json" --against "$x" --strict >"$dir/asked" 2>&1 || fail "asked: $(cat "$dir/asked")"
grep -q '^8 rows: 8 OK; passed' "$dir/asked" || fail "asked: $(cat "$dir/asked")"
exit $bad
