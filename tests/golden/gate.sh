#!/bin/sh
# The metric gate: this build's policy matrix against the committed baseline, and what the gate says
# of a worsened machine, of missing rows, of another binary. A policy that changes on purpose:
# `make golden-update` shows the rows and records them.
set -u
cd "$(dirname "$0")/../.." || exit 2
x=${BUILD:-build}/xpusim
. tests/helpers/policies.sh
matrix=experiments/gate/policies.json
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
bad=0
fail() {
    echo "FAILED: $*"
    bad=1
}

"$x" gate --baseline $matrix || fail "this build does not pass $matrix (make golden-update records changes)"
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
grep -q '^14 rows: 14 ADDED; FAILED$' "$dir/out" || fail "an update shows the differences first"
"$x" gate --baseline "$dir/small.json" --strict >/dev/null || fail "unchanged code passes"
XPUSIM_DATA_DIR=$PWD "$x" gate --baseline "$dir/small.json" --against "$x" --strict >/dev/null ||
    fail "a binary passes against itself"

# A tenth of the iGPU gone: worse, exit 1, the table as recorded.
sed 's/"set":[[:space:]]*\[\]/"set": ["sim.graphics.reserve_time_frac=0.1"]/' "$dir/small.json" >"$dir/slow.json"
"$x" gate --baseline "$dir/slow.json" --all --markdown "$dir/slow.md" --junit "$dir/slow.xml" >"$dir/slow.txt"
[ $? -eq 1 ] || fail "a slower iGPU passes"
cat "$dir/slow.md" >>"$dir/slow.txt"
if ! cmp -s "$dir/slow.txt" tests/golden/gate.txt; then
    diff -u tests/golden/gate.txt "$dir/slow.txt"
    if [ "${1:-}" = --update ]; then cp "$dir/slow.txt" tests/golden/gate.txt; else fail "the report differs"; fi
fi
grep -q 'tests="14" failures="' "$dir/slow.xml" || fail "JUnit"

# A row that is gone, on either side, does not pass.
sed 's/"fcfs", //' "$dir/small.json" >"$dir/fewer.json"
"$x" gate --baseline "$dir/fewer.json" >"$dir/out" && fail "a recorded policy that is not run passes"
grep -q '^REMOVED' "$dir/out" || fail "no REMOVED row"
sed 's/"fcfs", /"fcfs", "srpt", /' "$dir/small.json" >"$dir/more.json"
"$x" gate --baseline "$dir/more.json" >"$dir/out" && fail "a policy without a baseline passes"
grep -q '^ADDED' "$dir/out" || fail "no ADDED row"
sed 's/"fcfs"/"nonesuch"/' "$dir/small.json" >"$dir/other.json"
"$x" gate --baseline "$dir/other.json" >/dev/null && fail "an unknown policy passes"
printf '#!/bin/sh\nexit 1\n' >"$dir/broken"
chmod +x "$dir/broken"
"$x" gate --baseline "$dir/small.json" --against "$dir/broken" >/dev/null 2>&1
[ $? -eq 2 ] || fail "a binary that runs nothing lets everything pass"
exit $bad
