#!/bin/sh
# The recipes of docs/recipes compile without a warning, conform (little memory included), and have
# their intended effect, seen in the counters of runs.
set -u
cd "$(dirname "$0")/../.." || exit 2
build=${BUILD:-build}
x=$build/xpusim
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
bad=0
fail() {
    echo "FAILED: $*"
    bad=1
}
value() { # name in the JSON of a run
    sed -n "s/^[[:space:]]*\"$1\":[[:space:]]*\([-0-9.e+]*\).*/\1/p" "$dir/out" | head -n 1
}
run() { # policy, options...
    "$x" run --policy "$@" --trouble '' --json --set sim.annotation.sigma_prefill=0 --set sim.annotation.sigma_decode=0 \
        --workload mixed:reactive_per_min=6,proactive_per_min=12,duration_s=120 >"$dir/out" || fail "run $*"
}
for recipe in docs/recipes/*.c; do
    name=$(basename "$recipe" .c)
    "${CC:-gcc}" -std=c17 -D_POSIX_C_SOURCE=200809L -ffp-contract=off -fPIC -shared -I. -O2 -Wall -Wextra -Wpedantic \
        -Wconversion -Wshadow -Werror -o "$dir/$name.so" "$recipe" || fail "$name does not compile"
    "$x" check-policy "$dir/$name.so" --loads 20 >"$dir/log" 2>&1 || { fail "$name does not conform"; cat "$dir/log"; }
done
# The NPU of the random machines does not decode, so that both models are on the iGPU there.
for load in 1 3 4 6; do
    "$x" check-policy python:docs/recipes/by_model.py:ByModel --load $load --params second=igpu >"$dir/log" 2>&1 ||
        { fail "by_model does not serve load $load"; cat "$dir/log"; }
done
# Where memory is kept for everybody who has begun, no form is refused for it, also while other
# programs take some. Without that check the policy stalls, and check-policy says so.
for recipe in admit.py:Admit npu_prefill.py:NpuPrefill; do
    "$x" check-policy "python:docs/recipes/$recipe" --loads 20 >"$dir/log" 2>&1 || { fail "$recipe does not conform"; cat "$dir/log"; }
    run "python:docs/recipes/$recipe" --set sim.kv_capacity_tokens=6000 --decisions "$dir/decisions"
    [ "$(value kv_recompute_evictions)" = 0 ] && ! grep " form .* = -" "$dir/decisions" || fail "$recipe: a form is refused, or somebody evicted"
    run "python:docs/recipes/$recipe" --set sim.kv_capacity_tokens=6000 --machine traces/machine/laptop.json
done
sed 's/if self.begun and kept + needed > self.kv_free_tokens:/if False:/' docs/recipes/admit.py >"$dir/greedy.py"
cmp -s "$dir/greedy.py" docs/recipes/admit.py && fail "greedy: the recipe did not change"
(x=$(cd "$build" && pwd)/xpusim && cd "$dir" && "$x" check-policy python:greedy.py:Admit) >"$dir/log" 2>&1
[ $? = 1 ] && grep -q "stalled: .*last action refused: form at .* not enough free KV" "$dir/log" || fail "greedy conforms: $(cat "$dir/log")"
grep -q "^who gives KV back: .*docs/recipes/admit.py$" "$dir/log" || fail "greedy: no way on: $(cat "$dir/log")"
# A pass of a prompt runs on both devices (0 is the NPU of this machine), one of tokens on the iGPU
# only. In a form, `request:0:tokens` is a prompt and `request:1:1` a token.
run "python:docs/recipes/npu_prefill.py:NpuPrefill" --decisions "$dir/decisions"
awk '$3 == "form" { split($5, of, ":"); role[++n] = of[2] }
    $3 == "launch" { split($4, p, "="); split($5, d, "="); on[role[p[2]], d[2]]++ }
    END { exit !(on[0, 0] > 0 && on[0, 1] > 0 && on[1, 1] > 0 && on[1, 0] == 0) }' "$dir/decisions" || fail "npu_prefill: a prompt without the NPU, or a token on it"
# A policy that forgets the request that `form` refused loses requests where memory is short, and
# check-policy says so.
sed 's/while (rc == -ENOMEM && take_from_younger(s, p, r)) {/if (rc != 0) { reqq_remove(r); return false; }\n    while (rc == -ENOMEM) {/' \
    docs/recipes/evict.c >"$dir/forgets.c"
cmp -s "$dir/forgets.c" docs/recipes/evict.c && fail "forgets: the recipe did not change"
"${CC:-gcc}" -std=c17 -D_POSIX_C_SOURCE=200809L -ffp-contract=off -fPIC -shared -I. -w -o "$dir/forgets.so" "$dir/forgets.c"
"$x" run --policy "$dir/forgets.so" >"$dir/log" 2>&1 || fail "forgets: a roomy run fails already"
(x=$(cd "$build" && pwd)/xpusim && cd "$dir" && "$x" check-policy ./forgets.so) >"$dir/log" 2>&1
[ $? = 1 ] && grep -q "forgets.so, load [0-9]*: .*last action refused: form at .* not enough free KV" "$dir/log" ||
    fail "forgets conforms: $(cat "$dir/log")"
grep -q "^who gives KV back: .*docs/recipes/evict.c$" "$dir/log" || fail "forgets: no way on: $(cat "$dir/log")"
# A request that stops for reactive work continues at the same place, and nothing is prefilled
# twice. A reactive request waits for less than half of the time that it does where none is stopped.
run fcfs
never=$(value reactive.ttft_s.mean)
run "$dir/preempt-and-resume.so"
stopped=$(value reactive.ttft_s.mean)
[ "$(value launch_yielded)" -gt 0 ] && [ "$(value kv_recompute_evictions)" = 0 ] && [ "$(value pass_cancelled)" = 0 ] ||
    fail "preempt-and-resume: no launch yields, or work is lost"
awk "BEGIN { exit !($stopped < 0.5 * $never) }" || fail "reactive TTFT: $stopped s, $never s without preemption"
# 6,000 tokens of KV do not hold all requests. Some start over, and all finish (a run that does not
# fails).
run "$dir/evict.so" --set sim.kv_capacity_tokens=6000
[ "$(value kv_recompute_evictions)" -gt 0 ] || fail "evict: nobody gave way"
run "$dir/preempt-and-resume.so" --set sim.kv_capacity_tokens=4500
exit $bad
