#!/bin/sh
# Drafters of token texts are tested. Simulated runs draft and accept on the shipped texts as many
# as a search without an automaton counts. One request is served at a time, each text once.
set -u
cd "$(dirname "$0")/../.." || exit 2
x=$(cd "${BUILD:-build}" && pwd)/xpusim
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
bad=0
fail() {
    echo "FAILED: $*"
    bad=1
}
machine="--soc snapdragon-8gen2 --llm qwen2.5-1.5b"
command -v python3 >/dev/null 2>&1 || {
    echo "skipped: no python3"
    exit 0
}
counts() { # of a run: verifications, drafted and accepted tokens
    python3 -c '
import json, sys
m = json.load(sys.stdin)["metrics"]
n = m["verify.n"]
print(n, round(n * m["verify.drafted_tokens.mean"]), round(n * m["verify.accepted_tokens.mean"]))'
}
for file in code_edits change_texts; do
    for drafter in lookup suffix; do
        want=$(python3 tests/helpers/drafts_by_hand.py traces/texts/$file.jsonl $drafter)
        # shellcheck disable=SC2086
        is=$("$x" run $machine --policy sd-npu:drafter=$drafter --workload texts:file=$file --json 2>"$dir/said" | counts)
        [ -n "$want" ] && [ "$is" = "$want" ] || fail "$file, $drafter: $is, by hand $want $(cat "$dir/said")"
    done
done
# With the user's earlier answers kept, in the order of the workload's seed.
for file in code_edits change_texts; do
    "$x" trace gen --workload texts:file=$file,history=1 --seed 4 -o "$dir/order.csv" 2>"$dir/said" || fail "$file: $(cat "$dir/said")"
    for drafter in lookup suffix; do
        want=$(python3 tests/helpers/drafts_by_hand.py traces/texts/$file.jsonl $drafter "$dir/order.csv")
        # shellcheck disable=SC2086
        is=$("$x" run $machine --policy sd-npu:drafter=$drafter --workload texts:file=$file,history=1 --seed 4 --json 2>"$dir/said" | counts)
        [ -n "$want" ] && [ "$is" = "$want" ] || fail "$file, $drafter, history: $is, by hand $want $(cat "$dir/said")"
    done
done
"$x" run --policy sd-npu --workload summary:history=1 >"$dir/out" 2>"$dir/said"
[ $? = 2 ] && grep -q 'history: of texts only' "$dir/said" || fail "history of a summary: $(cat "$dir/said")"
# The other policy that speculates asks the same drafters; several requests at once accept no less than none.
"$x" run --policy agent-xpu-v2:speculate=igpu,drafter=suffix --workload texts:n=6,concurrent=3 --json >"$dir/v2.json" 2>"$dir/said" &&
    python3 -c 'import json, sys; sys.exit(json.load(open(sys.argv[1]))["metrics"]["verify.accepted_tokens.mean"] < 1)' "$dir/v2.json" ||
    fail "agent-xpu-v2: $(cat "$dir/said")"
"$x" run --policy agent-xpu-v2:speculate=igpu --set sim.speculation.method=suffix --workload texts:n=6,concurrent=3 --json \
    >"$dir/method.json" 2>"$dir/said" || fail "sim.speculation.method: $(cat "$dir/said")"
python3 - "$dir/v2.json" "$dir/method.json" <<'END' || fail "the run's drafter and the policy's differ"
import json, sys
a, b = (json.load(open(f))["metrics"] for f in sys.argv[1:])
sys.exit(a != b)
END
# Without texts there is nothing to draft on.
# shellcheck disable=SC2086
"$x" run $machine --policy sd-npu:drafter=suffix --workload summary:n=2 >"$dir/out" 2>"$dir/said"
[ $? = 2 ] && grep -q 'drafts on token texts, which the workload has not' "$dir/said" && [ ! -s "$dir/out" ] ||
    fail "no texts: $(cat "$dir/said")"
exit $bad
