#!/bin/sh
# What `make demo` shows: the papers' mixed workload, 3 reactive and 6 proactive requests a minute for
# 15 minutes, real token lengths, on a Core Ultra 5 125H, for both models, on common random numbers.
set -eu
cd "$(dirname "$0")/.."
x=${BUILD:-build}/xpusim
for model in llama-3.2-3b llama-3.1-8b; do
    echo
    echo "### $model"
    "$x" compare --soc core-ultra-5-125h --llm $model \
        --workload mixed:reactive_per_min=3,proactive_per_min=6,duration_s=900 \
        --policy openvino-cb --policy openvino-cb:variant=whole --policy openvino-cb:variant=vllm \
        --policy fcfs --policy agent-xpu-v2 --baseline openvino-cb --replications 20 --seed 1
done
