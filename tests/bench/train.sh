#!/bin/sh
# What `make fast` lets GCC profile: train.sh XPUSIM. Many requests on one device, and the mixed load on
# two, by policies of unlike kinds; once every kernel as an event, and a sweep, whose workers are profiled too.
set -e
out=$(mktemp -d)
trap 'rm -rf "$out"' EXIT
"$1" run --soc w1-reference --workload w1:n=20000 --policy openvino-cb:max_num_seqs=32,max_num_batched_tokens=512 \
    --sketch >"$out/run"
for policy in agent-xpu-v2 agent-xpu-v1 openvino-cb vllm-v1 edf prema; do
    "$1" run --policy $policy >"$out/run"
done
"$1" run --policy agent-xpu-v2 --set sim.collapse=false >"$out/run"
"$1" compare --policy agent-xpu-v2 --policy openvino-cb --replications 4 --quiet >"$out/run"
