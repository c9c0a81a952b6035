#!/bin/sh
# Do conclusions depend on one number of the hardware model? The demo's comparison with each of the least
# certain ones at its low, nominal and high value: a Markdown table on stdout (hwmodels/SENSITIVITY.md).
set -eu
cd "$(dirname "$0")/.."
x=${BUILD:-build}/xpusim
replications=${REPLICATIONS:-20}
load="--workload mixed:reactive_per_min=3,proactive_per_min=6,duration_s=900"

cat <<TEXT
# Do conclusions depend on one number?

\`make sensitivity\` makes this page. It compares agent-xpu-v2 with openvino-cb on \`core-ultra-5-125h\` with Llama-3.2-3B, at
3 reactive and 6 proactive requests a minute. There are $replications replications of 15 minutes on common random numbers. Values
are means with 95 % intervals, and changes are against the baseline in the same row.

| number | value | reactive E2E of openvino-cb, s | of agent-xpu-v2, s | change | energy per token |
|---|---|---|---|---|---|
TEXT

row() { # name, value, options...
    name=$1
    value=$2
    shift 2
    # shellcheck disable=SC2086
    "$x" compare --policy openvino-cb --policy agent-xpu-v2 --baseline openvino-cb --quiet \
        --replications "$replications" $load --metric reactive.e2e_s.mean --metric energy_j_per_token "$@" |
        awk -v name="$name" -v value="$value" '
            NF == 1 && /^[a-z]/ { metric = $1 }
            $1 == "openvino-cb" && metric ~ /e2e/ { base = $2 " " $3 " " $4 }
            $1 == "agent-xpu-v2" {
                text = $0
                sub(/^ *agent-xpu-v2 */, "", text)
                split(text, part, /\]/)
                if (metric ~ /e2e/) { own = part[1] "]"; verdict = part[2] } else { energy = part[2] }
            }
            END {
                gsub(/^ +/, "", verdict); gsub(/^ +/, "", energy)
                printf "| %s | %s | %s | %s | %s | %s |\n", name, value, base, own, verdict, energy
            }'
}

row "all nominal" "-"
igpu=soc.devices.igpu.runtimes.0
for b in 0.1 0.3 1; do
    row "weights that a further decode reads again" $b --set $igpu.decode_batch_inefficiency=$b
done
row "attention's launches per further sequence" 0 --set $igpu.attention_launches=0
for r in 2.2 4.2; do
    row "iGPU rate, TFLOP/s" $r --set $igpu.rate=$r
done
for b in 58 78; do
    row "iGPU bandwidth, GB/s" $b --set $igpu.bandwidth=$b
done
row "iGPU as its siblings' tables say" "-" --soc core-ultra-5-125h-siblings
for r in 2.0 3.5; do
    row "NPU rate, TFLOP/s" $r --set soc.devices.npu.runtimes.0.rate.low=$r --set soc.devices.npu.runtimes.0.rate.high=$r \
        --set soc.devices.npu.runtimes.0.rate.value=$r
done
for s in 0 500; do
    row "NPU-iGPU barrier, us" $s --set soc.host.sync.value=$s
done
for c in 1 120; do
    row "compiling an attention kernel, s" $c --set soc.compiler.fixed.low=$c --set soc.compiler.fixed.high=$c \
        --set soc.compiler.fixed.value=$c
done
row "package power" "PL1 28 W, PL2 115 W" --set sim.power.limit=package
row "package power" "PL1 65 W" --set sim.power.limit=package --set soc.package.pl1.value=65
