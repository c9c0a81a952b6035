#!/bin/sh
# No mechanism is inert. When it is switched off, or pressed hard, it must change a recorded run,
# for the policies to which it must matter. An equal run shows no change.
set -u
cd "$(dirname "$0")/../.." || exit 2
x=${BUILD:-build}/xpusim
. tests/helpers/policies.sh
small="mixed:reactive_per_min=6,proactive_per_min=12,duration_s=120"
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
status=0

requests() { # file, policy, more options...: every request's times
    out=$1
    policy=$2
    shift 2
    # shellcheck disable=SC2046
    "$x" run --policy "$policy" $(machine_of "$policy") --workload "$small" --seed 3 --quiet \
        --requests "$out" "$@" >/dev/null || status=1
    sed -i '/^#/d' "$out" # who it was: the policy's name alone must not make a difference
}

changes() { # policy, more options...
    policy=$1
    shift
    requests "$dir/base.csv" "$policy"
    requests "$dir/again.csv" "$policy"
    requests "$dir/changed.csv" "$policy" "$@"
    if ! cmp -s "$dir/base.csv" "$dir/again.csv"; then
        echo "mechanisms: $policy: the same run differs"
        status=1
    fi
    if cmp -s "$dir/base.csv" "$dir/changed.csv"; then
        echo "mechanisms: $policy: nothing changes with $*"
        status=1
    fi
}

differs() { # policy, parameters, more options...: the parameters change something
    policy=$1
    with=$2
    shift 2
    "$x" run --policy "$policy" --workload "$turns" --seed 3 --quiet --requests "$dir/base.csv" "$@" >/dev/null || status=1
    "$x" run --policy "$policy:$with" --workload "$turns" --seed 3 --quiet --requests "$dir/changed.csv" "$@" >/dev/null || status=1
    sed -i '/^#/d' "$dir/base.csv" "$dir/changed.csv"
    if cmp -s "$dir/base.csv" "$dir/changed.csv"; then
        echo "mechanisms: $policy: nothing changes with $with"
        status=1
    fi
}

# Two engines at once meet at the DDR, and a policy with one engine does not. In hetero-split the
# NPU takes so much longer that a slower iGPU shows in its energy only.
for p in agent-xpu-v1 agent-xpu-v2 pd-static pd-mixed; do
    changes "$p" --set sim.contention=none
done
# Loading graphs takes time where graphs are switched.
changes sd-npu --set soc.loader.bandwidth.high=76 \
    --set soc.loader.bandwidth.value=76 --set soc.loader.fixed.low=0 --set soc.loader.fixed.value=0
# With KV for about three requests, admission or eviction must act.
for p in agent-xpu-v2 openvino-cb orca vllm-v0 vllm-v1 sarathi mlfq srpt vtc; do
    changes "$p" --set sim.kv_capacity_tokens=4800
done
# Compiling attention on the fly, host costs, the display.
changes agent-xpu-v2 --set soc.compiler.fixed.low=0 --set soc.compiler.fixed.value=0 \
    --set soc.compiler.per_token.value=0
changes agent-xpu-v2 --set soc.host.sync.value=0
changes openvino-cb --set sim.graphics.frames_per_s=60
# How a pass is stopped and what becomes of KV, on turns that follow tool calls and little memory.
turns="mixed:reactive=bfcl_multiturn,proactive=bfcl_multiturn,sessions=1,reactive_per_min=10,proactive_per_min=10,duration_s=120,tool_s=5"
for with in preempt=layer preempt=kernel preempt=kernel,kv=recompute preempt=kernel,kv=swap class=rt_alone \
    preempt=reset gap_kv=preserve gap_kv=discard gap_kv=swap gap_kv=infercept gap_kv=ttl; do
    differs program-fcfs "$with" --set sim.kv_capacity_tokens=16384 --set soc.devices.igpu.can_reset=true
done
differs hpf inflight=16
differs hpf level=1 --set soc.devices.igpu.can_withdraw=true
exit $status
