#!/bin/sh
# Workloads of agents (docs/concepts/agents.md) are tested in three ways. Random ones make the
# requests that a program of its own derives. A run of a workload is the run of its file. A wrong
# workload leaves nothing behind.
set -u
cd "$(dirname "$0")/../.." || exit 2
x=${BUILD:-build}/xpusim
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
bad=0
fail() { echo "FAILED: $*"; bad=1; }

python3 tests/helpers/agents_check.py "$x" 60 1 || fail "random workloads"
for w in traces/workloads/*.json; do
    name=$(basename "$w" .json)
    "$x" trace gen --workload "$w" --seed 5 -o "$dir/w.csv" || fail "$name"
    "$x" trace gen --workload "$name" --seed 5 | cmp -s - "$dir/w.csv" || fail "$name: not the file of that name"
    "$x" run --policy agent-xpu-v2 --workload "$name" --seed 5 --json | grep -v '"workload"' >"$dir/1.json"
    "$x" run --policy agent-xpu-v2 --trace "$dir/w.csv" --seed 5 --json | grep -v '"workload"' | cmp -s - "$dir/1.json" ||
        fail "$name: its file runs otherwise"
    "$x" help trace gen | grep -q "$name" || fail "help trace gen does not name $name"
done
sed 's/"prompt_tokens": 6000/"prompt_tokens": 6e99/' traces/workloads/coding-sessions.json >"$dir/bad.json"
"$x" trace gen --workload "$dir/bad.json" -o "$dir/never.csv" 2>"$dir/said"
[ $? = 2 ] && [ ! -e "$dir/never.csv" ] && grep -q "bad.json: clients\[1\].prompt_tokens: must be a whole number from 1 to 1e+08$" "$dir/said" ||
    fail "a bad number: $(cat "$dir/said")"
exit $bad
