#!/bin/sh
# Writes hwmodels/VALIDATION.md to stdout: what the shipped files predict of published measurements.
# Makes hwmodels/residuals.csv, which intervals rest on, again as well.
set -eu
cd "$(dirname "$0")/.."
x=${BUILD:-build}/xpusim
coverage=$("$x" calibrate --points reference --residuals hwmodels/residuals.csv)
cat <<'TEXT'
# How far the hardware models are off

Made by `make validation` from `hwmodels/points/reference.csv` (published measurements, each with
its source) and `hwmodels/runs`. Errors are |predicted / measured - 1|, in percent. "Models left out"
is the error on models that the fit did not see: the one to trust. Powers are inputs of a SoC file,
taken from rows like these, so no row of power is predicted there. A row of energy tests the time alone;
`hwmodels/points/energy.csv` below tests powers.

## Every row, from the shipped files (`xpusim validate --points reference`)

TEXT
echo '```'
"$x" validate --points reference
echo '```'
cat <<'TEXT'

## Calibrations, with models left out (`xpusim calibrate --points reference --soc S`)

A SoC of the same family lends its points, scaled by datasheet rate and bandwidth.

TEXT
for soc in core-ultra-7-155h core-ultra-7-255h core-ultra-7-258v core-ultra-9-288v snapdragon-8elite \
    snapdragon-8gen3 snapdragon-x-elite snapdragon-x2-elite; do
    echo '```'
    "$x" calibrate --points reference --soc $soc
    echo '```'
    echo
done
cat <<'TEXT'
## What the 95 % intervals are worth (`xpusim calibrate --points reference --residuals`)

TEXT
echo '```'
echo "$coverage"
echo '```'
cat <<'TEXT'

## Machines left out, with one measured model (`xpusim validate --points reference --leave-machine-out 1`)

Each machine is made from each of its siblings as `new-soc` makes it. One model of it is then measured at one width, and its
other models are predicted at all widths. Every model is the measured one in turn. *Roofline* is the sibling fitted with rate,
bandwidth, launch and attention alone, and scaled by data sheet. *Scaled* multiplies the data sheet's times by the measured
model's error in the phase. *Updated* is what `new-soc --measured` writes.

TEXT
echo '```'
"$x" validate --points reference --leave-machine-out 1
echo '```'
cat <<'TEXT'

## A machine that no fit has seen (`hwmodels/points/unseen.csv`)

`core-ultra-x7-358h` was made from the 258V by data sheet (`new-soc`) before its rows were compared with
anything. The second table makes it from every sibling, as above.

TEXT
echo '```'
"$x" validate --points unseen | sed -n '1,15p'
echo
"$x" validate --points reference --leave-machine-out 1 --unseen unseen | sed -n '/made from  /,$p'
echo '```'
cat <<'TEXT'

## Powers, by the meter they were read from (`xpusim validate --energy energy`)

TEXT
echo '```'
"$x" validate --energy energy
echo '```'
cat <<'TEXT'

## A serving run of vLLM on one GPU, from datasheet values and with three numbers fitted to its first 30 %

TEXT
echo '```'
"$x" validate --run vllm-rtx-pro-6000-llama-3.1-8b --soc rtx-pro-6000 --llm llama-3.1-8b-bf16 \
    --policy vllm-v1:max_num_seqs=128,max_num_batched_tokens=2048,async_scheduling=true \
    --fit rate,bandwidth,submit | grep -v '^xpusim'
echo '```'
cat <<'TEXT'

## Serving runs without a fit: intervals, and whether they hold the truth

TEXT
echo '```'
pro="--policy vllm-v1:max_num_seqs=128,max_num_batched_tokens=2048,async_scheduling=true"
# shellcheck disable=SC2086
{
    "$x" validate --run vllm-rtx-pro-6000-llama-3.1-8b --soc rtx-pro-6000 --llm llama-3.1-8b-bf16 $pro
    echo
    "$x" validate --run vllm-2x-rtx-pro-6000-qwen3-32b --soc rtx-pro-6000-x2 --llm qwen3-32b-bf16 $pro
    echo
    "$x" validate --run vllm-rtx-4090-llama-3.1-8b --soc rtx-4090 --llm llama-3.1-8b-bf16 --set sim.kv_capacity_tokens=41408 \
        --policy vllm-v1:max_num_seqs=256,max_num_batched_tokens=2048,async_scheduling=true
} | grep -v '^xpusim'
echo '```'
cat <<'TEXT'

## Two cards, tensor parallel: the link between them as one of three fitted numbers

TEXT
echo '```'
# shellcheck disable=SC2086
"$x" validate --run vllm-2x-rtx-pro-6000-qwen3-32b --soc rtx-pro-6000-x2 --llm qwen3-32b-bf16 $pro \
    --fit rate,bandwidth,soc.devices.gpu.exchange.link | grep -v '^xpusim'
echo '```'
cat <<'TEXT'

## What a further sequence costs in a decode batch (`hwmodels/points/batched-decode.csv`)

Seconds at the batch over seconds at batch 1, minus 1, per further sequence: 0 when it is free, 1 when it costs as much as the
first. One runtime has two machines, llama.cpp's Vulkan backend, and they differ by 0.2. So no file has a share of its runtime
(`decode_batch_inefficiency`). Its range is 0 to 1, and `compare --uncertainty` carries it. It also draws `batch_fill`: how much
of what a short prompt costs a decode batch pays, 0 to 1. The second table predicts each case by the others.

Two machines with files of their own have such rows, the 258V under vLLM and the 255H under OpenVINO. Their entries are of OpenVINO
2025. They predict how much longer a step of 5 (3) sequences takes than one's with these errors, in %, median and largest
(Qwen3.5 has the shape of Qwen3 of its size):

| batch_fill | 15 rows | Qwen3 8B, 258V | Qwen3.5, 258V | a mixture of experts, 258V | Qwen3.5 9B, 255H |
|---|---|---|---|---|---|
| 0 | 14 / 28 | 3 / 9 | 10 / 16 | 25 / 28 | 18 / 18 |
| 0.5 | 10 / 28 | 3 / 9 | 10 / 16 | 25 / 28 | 12 / 14 |
| 1 | 22 / 42 | 23 / 32 | 15 / 42 | 25 / 28 | 28 / 41 |

The default is too dear on both, so the entries of OpenVINO on these iGPUs and on the 288V's and the 358H's have 0.5, with the whole
range. Elsewhere the default stays: no part without matrix units has a row.

Rows of one sequence agree on matrix products, but not on attention: under OpenVINO 2026.4 the 255H's is slower from two rows
on. Its two contexts leave 95.3 ms for three rows over 75.7 ms for one where there is no context, 1.26 times.

TEXT
echo '```'
python3 hwmodels/batches.py
echo '```'
