#!/bin/sh
# The shipped points are predicted as well as hwmodels/VALIDATION.md says. A SoC file is calibrated
# and run. The measured vLLM run is replayed with two numbers (WHOLE=yes: three) fitted on its first
# 30 %. It is within the published errors of a layer-profiled simulator (E2E 1.9 %, TTFT 10.8 %),
# and the datasheet alone is not. Bad input is refused.
set -u
cd "$(dirname "$0")/../.." || exit 2
x=${BUILD:-build}/xpusim
machine="--soc rtx-pro-6000 --llm llama-3.1-8b-bf16"
policy="--policy vllm-v1:max_num_seqs=128,max_num_batched_tokens=2048,async_scheduling=true"
tmp=$(mktemp -d)
trap 'rm -rf "$tmp"' EXIT
status=0

# A measured run is fitted. A fit is some hundred replays of it, and a sanitizer sees each line in
# its first requests. The results of the whole are for the usual build.
of() { # name
    [ -n "${SANITIZED:-}" ] || { echo "vllm-$1" && return; }
    head -n 48 "hwmodels/runs/vllm-$1.csv" >"$tmp/$1.csv"
    echo "$tmp/$1.csv"
}
bounds="--max-e2e-mape 1.9 --max-ttft-mape 10.8" tight=10
[ -z "${SANITIZED:-}" ] || {
    echo "skipped: under a sanitizer: how well whole runs are predicted, which the usual build compares"
    bounds="--max-e2e-mape 100 --max-ttft-mape 100" tight=0.01
}
served=$(of rtx-pro-6000-llama-3.1-8b)
[ -n "${SANITIZED:-}" ] || served=hwmodels/runs/$served.csv # a file is one way to name it
run="--run $served"

expect() { # exit status, text that must appear on either stream, arguments...
    want=$1
    text=$2
    shift 2
    "$x" validate "$@" >"$tmp/out" 2>&1
    got=$?
    if [ $got -ne "$want" ] || ! grep -qF -- "$text" "$tmp/out"; then
        echo "FAILED (exit $got, wanted $want and \"$text\"): validate $*"
        tail -n 3 "$tmp/out"
        status=1
    fi
}
numbers=rate,bandwidth
[ -z "${WHOLE:-}" ] || numbers=rate,bandwidth,submit
# shellcheck disable=SC2086
{
    expect 0 "unseen" $run $machine $policy --fit $numbers $bounds
    # nothing fitted: an interval that holds the truth, on three runs; one card and two, memory free and full
    for unfitted in "$run $machine $policy" \
        "--run $(of rtx-4090-llama-3.1-8b) --soc rtx-4090 --llm llama-3.1-8b-bf16 --set sim.kv_capacity_tokens=41408
            --policy vllm-v1:max_num_seqs=256,max_num_batched_tokens=2048,async_scheduling=true" \
        "--run $(of 2x-rtx-pro-6000-qwen3-32b) --soc rtx-pro-6000-x2 --llm qwen3-32b-bf16 $policy"; do
        expect 0 "holds the truth" $unfitted
        [ -n "${SANITIZED:-}" ] || test "$(grep -cE '^ *(E2E|TTFT|TPOT) .* yes ' "$tmp/out")" = 3 || {
            echo "FAILED: an interval does not hold the truth: $unfitted"
            cat "$tmp/out"
            status=1
        }
    done
    expect 1 "upper bound" $run $machine $policy --max-e2e-mape $tight
    awk -F, 'BEGIN { OFS = "," } /^#/ || /^request/ { print; next } { $6 *= n++ % 2 ? 2 : 0.5; if ($6 < $5) $5 = $6 / 2; print }' \
        "$served" >"$tmp/alternating.csv"
    expect 0 "LACK OF FIT" --run "$tmp/alternating.csv" $machine $policy --fit bandwidth
    grep -v '^#' "$served" | head -n 11 >"$tmp/few.csv" # a header and 10 requests, of which the first 30 % are 3
    expect 2 "3 requests to fit 1 number on: at least 5 are needed; --fit-on first:F takes more of the run's 10" \
        --run "$tmp/few.csv" $machine $policy --fit bandwidth
    expect 2 "nonesuch" $run $machine $policy --fit nonesuch
    expect 2 "--fit-on" $run $machine $policy --fit rate --fit-on first:1.5
    expect 2 "nonesuch.csv" --run nonesuch.csv $machine $policy
    printf 'request_id,arrival_s,input_tokens,output_tokens,ttft_s,e2e_s\n0,0,10,-4,0.1,1\n' >"$tmp/bad.csv"
    expect 2 "bad.csv:2" --run "$tmp/bad.csv" $machine $policy
    expect 2 "say what to validate"
    # latency rows, those without a prediction as 100 % (a fifth: SoCs without a file)
    expect 0 "latency rows" --points reference --max-median 12
    expect 1 "is above" --points reference --max-median 4
    expect 0 "median_with_unpredicted" --points reference --soc core-ultra-7-155h --max-p90 25 --json
    # co-run rows are shared by the contention model that is asked for
    expect 0 "bandwidth_gbs" --points reference --soc snapdragon-8-elite-gen5 --set sim.contention=none
    shared=$(grep bandwidth_gbs "$tmp/out")
    expect 0 "bandwidth_gbs" --points reference --soc snapdragon-8-elite-gen5 --set sim.contention=max-min
    test "$(grep bandwidth_gbs "$tmp/out")" != "$shared" || {
        echo "FAILED: validate --points does not read sim.contention"
        status=1
    }
    # models against co-runs: each machine by a fit without it; one model with every row
    expect 0 "all, fit of all" --corun corun
    expect 0 "rows, each predicted" --corun corun --set sim.contention=max-min
    expect 2 "nonesuch" --corun nonesuch
    expect 2 "exclude each other" --corun corun --points reference
    # a setting that changes no prediction is refused
    expect 2 "--set soc.ddr.peak=1" --points reference --set soc.ddr.peak=1
    expect 2 "--set sim.kv_capacity" --points reference --set sim.kv_capacity_tokens=9
    expect 0 "latency rows" --points reference --set sim.contention_minor=0.2
    expect 2 "nonesuch" --points nonesuch
    expect 2 "no such SoC" --points reference --soc nonesuch
    expect 2 "max-median" --points reference --max-median x
}
# A row without a value has the prediction of the same row with one, and no share in the errors.
printf '%s\n' soc,device,runtime,model,weight_bits,act_bits,input_tokens,batch,metric,value \
    core-ultra-7-155h,igpu,openvino-2025.3,llama-3.2-3b,4,16,1024,1,ttft_ms,500 \
    core-ultra-7-155h,igpu,openvino-2025.3,llama-3.2-3b,4,16,1024,1,ttft_ms, \
    core-ultra-7-258v,igpu,openvino-2025.3,llama-3.2-3b,4,16,1024,1,ttft_ms, >"$tmp/asked.csv"
expect 0 "latency rows            1" --points "$tmp/asked.csv" --soc core-ultra-7-155h
"$x" validate --points "$tmp/asked.csv" --soc core-ultra-7-155h --csv >"$tmp/rows"
if [ "$(cut -d, -f11 "$tmp/rows" | sed -n 2,3p | tr '\n' ' ')" != "500  " ] || [ "$(wc -l <"$tmp/rows")" != 3 ] ||
    [ "$(cut -d, -f13-15 "$tmp/rows" | sort -u | wc -l)" != 2 ]; then
    echo "a row without a value is predicted otherwise: $(cat "$tmp/rows")"
    status=1
fi
calibrate() { # exit status, text, arguments...
    want=$1
    text=$2
    shift 2
    "$x" calibrate "$@" >"$tmp/out" 2>&1
    got=$?
    if [ $got -ne "$want" ] || ! grep -qF -- "$text" "$tmp/out"; then
        echo "FAILED (exit $got, wanted $want and \"$text\"): calibrate $*"
        tail -n 3 "$tmp/out"
        status=1
    fi
}
calibrate 0 "models left out" --points reference --soc ryzen-ai-xdna2 -o "$tmp/my.json"
"$x" run --soc "$tmp/my.json" --policy agent-xpu-v2 --workload mixed:reactive_per_min=6,proactive_per_min=6,duration_s=60 >"$tmp/out" 2>&1 || {
    echo "a calibrated file does not run"
    status=1
}
calibrate 2 "needs at least" --points reference --soc snapdragon-8gen2 -o "$tmp/none.json"
calibrate 2 "no latency row" --points reference --soc rtx-pro-6000 -o "$tmp/none.json"
# A row of the SoC, but of a runtime that its file lacks.
{ echo soc,device,runtime,model,weight_bits,act_bits,input_tokens,batch,metric,value; echo core-ultra-7-258v,igpu,vllm,qwen3-8b,4,16,1024,1,tpot_ms,60; } >"$tmp/vllm.csv"
calibrate 2 "device, runtime and weight_bits of an entry of this SoC" --points "$tmp/vllm.csv" --soc core-ultra-7-258v -o "$tmp/none.json"
calibrate 2 "needs --points and either --soc, --residuals or --memory" --points reference
calibrate 2 "asked.csv:3: column value: is empty" --points "$tmp/asked.csv" --soc core-ultra-7-155h -o "$tmp/none.json"
test ! -e "$tmp/none.json" || {
    echo "a refused calibration wrote a file"
    status=1
}
# Equal latencies have no correlation.
printf '%s\n' request_id,arrival_s,input_tokens,output_tokens,ttft_s,e2e_s 0,0,90,5,1,5 1,9,50,4,1,5 2,18,70,9,1,5 >"$tmp/equal.csv"
"$x" validate --run "$tmp/equal.csv" --soc core-ultra-5-125h --llm llama-3.2-3b --policy fcfs --uncertainty 0 -q >"$tmp/equal"
if ! grep -q "^  the roofline, nothing fitted" "$tmp/equal" || grep -q "Pearson\|nan" "$tmp/equal"; then
    echo "equal latencies: $(cat "$tmp/equal")"
    status=1
fi
exit $status
