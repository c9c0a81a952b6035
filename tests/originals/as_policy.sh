#!/bin/sh
# vLLM's own V1 scheduler runs as a policy (policies/python/examples/vllm_v1.py). It is compared
# with vllm-v1, decision by decision, on simulated loads.
#   as_policy.sh [PYTHON]    an interpreter with the package vllm; by default that of `originals.sh vllm-0.32.0`
# It runs by hand, because the package has 15 GB. Exit 1 says that one differs.
set -u
cd "$(dirname "$0")/../.." || exit 2
x=${BUILD:-build}/xpusim
list=tests/originals/vllm-0.32.0.txt
home=${XDG_CACHE_HOME:-$HOME/.cache}/xpusim-originals/$(git hash-object $list | cut -c1-12)
XPUSIM_PYTHON=${1:-$home/bin/python}
export XPUSIM_PYTHON
"$XPUSIM_PYTHON" -c 'import importlib.util, sys; sys.exit(importlib.util.find_spec("vllm") is None)' 2>/dev/null || {
    echo "skipped: $XPUSIM_PYTHON has no package vllm (sh tests/originals/originals.sh vllm-0.32.0 1 installs it)"
    exit 0
}
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
bad=0
while read -r policy params options; do
    [ "$params" = - ] && params=
    ok=1
    # shellcheck disable=SC2086
    "$x" run --policy "$policy$params" $options --decisions "$dir/ours" >/dev/null 2>"$dir/err" &&
        "$x" run --policy "python:policies/python/examples/vllm_v1.py:VllmV1${params%%,reserve*}" $options \
            --decisions "$dir/theirs" >/dev/null 2>"$dir/err" || ok=0
    tail -n +2 "$dir/ours" >"$dir/a"
    tail -n +2 "$dir/theirs" >"$dir/b"
    if [ $ok -eq 1 ] && cmp -s "$dir/a" "$dir/b"; then
        echo "equal: $(wc -l <"$dir/a") decisions, $(grep -c ' kv ' "$dir/a") of them evictions: $policy$params $options"
    else
        echo "DIFFERENT: $policy$params $options"
        grep 'xpusim: error' "$dir/err"
        diff "$dir/a" "$dir/b" | head -n 5
        bad=1
    fi
done <<'END'
vllm-v1 - --workload mixed:reactive_per_min=3,proactive_per_min=6,duration_s=900
vllm-v1 :max_num_batched_tokens=2048,max_num_seqs=128 --seed 2 --workload mixed:reactive_per_min=10,proactive_per_min=20,duration_s=200
vllm-v1 :max_num_seqs=2 --seed 3 --workload mixed:reactive_per_min=6,proactive_per_min=12,duration_s=200
vllm-v1 - --seed 3 --set sim.kv_capacity_tokens=5000 --workload mixed:reactive_per_min=10,proactive_per_min=20,duration_s=200
vllm-v1 :max_num_batched_tokens=256,long_prefill_token_threshold=100 --seed 5 --set sim.kv_capacity_tokens=5000 --workload mixed:reactive_per_min=10,proactive_per_min=20,duration_s=100
vllm-v1 - --seed 4 --set sim.prefix_reuse=false --workload mixed:reactive_per_min=4,proactive_per_min=4,duration_s=200,sessions=1
END
exit $bad
