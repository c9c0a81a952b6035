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
# The example of the page, by hand: 6000 + 500 tokens, twice 6000 + 300, then 6500 + 100 + 2 * 50 + 200.
sed -n '/^```json/,/^```/{//!p}' docs/concepts/agents.md >"$dir/page.json"
"$x" trace gen --workload "$dir/page.json" | tail -n +3 | cut -d, -f7,8 | sort | tr '\n' ' ' >"$dir/page"
[ "$(cat "$dir/page")" = "6300,50 6300,50 6500,100 6900,100 " ] || fail "the page's example: $(cat "$dir/page")"
sed 's/"prompt_tokens": 6000/"prompt_tokens": 6e99/' traces/workloads/coding-sessions.json >"$dir/bad.json"
"$x" trace gen --workload "$dir/bad.json" -o "$dir/never.csv" 2>"$dir/said"
[ $? = 2 ] && [ ! -e "$dir/never.csv" ] && grep -q "bad.json: clients\[1\].prompt_tokens: must be a whole number from 1 to 1e+08$" "$dir/said" ||
    fail "a bad number: $(cat "$dir/said")"
# Requests that are cancelled because their job ended are no work that a policy refused. So tuning
# and selection still have policies to choose from. A request whose user gave up counts, as before.
job='{"name": "job", "prompt_tokens": 100, "answer_tokens": 4, "turns": 2, "new_tokens": 10, "subagents": [{"name": "critic", "on_turns": [1],
    "background": true, "ends_with_job": true, "prompt_tokens": 100, "answer_tokens": 2000}]}'
left='{"name": "left", "prompt_tokens": 100, "answer_tokens": 2000, "cancel_s": 1}'
echo "{\"clients\": [$job]}" >"$dir/ends.json"
echo "{\"clients\": [$job, $left]}" >"$dir/both.json"
"$x" run --policy edf --workload "$dir/both.json" --json -q >"$dir/both"
grep -q '"all.shed":[^0-9]*2,' "$dir/both" && grep -q '"ended_with":[^0-9]*1$' "$dir/both" || fail "two left, one with its job"
set -- compare --policy edf --policy vllm-v1 --replications 5 -q
"$x" "$@" --workload "$dir/ends.json" --tune 3 --json | grep -E '"(out|training_given)"' >"$dir/tuned"
[ "$(grep -c '"out":[^0-9]*0,' "$dir/tuned")" = 2 ] && ! grep -q null "$dir/tuned" || fail "tuning: $(cat "$dir/tuned")"
"$x" "$@" --workload "$dir/ends.json" --select 0.9 | grep -q '^best: ' || fail "a selection finds nobody"
"$x" "$@" --workload "$dir/both.json" --select 0.9 | grep -q '^no policy served all requests' || fail "a selection among those who were left"
exit $bad
