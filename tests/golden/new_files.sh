#!/bin/sh
# `xpusim new-soc` and `new-llm` write files that run unchanged, and neither writes over a file or
# half of one.
set -u
cd "$(dirname "$0")/../.." || exit 2
root=$PWD
case ${BUILD:-build} in /*) x=${BUILD:-build}/xpusim ;; *) x=$PWD/${BUILD:-build}/xpusim ;; esac
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
cd "$dir" || exit 2
bad=0
fail() { echo "FAILED: $*"; bad=1; }
# $1: what the error says; then a command that is refused with 2 and leaves no file
refuse() {
    text=$1
    shift
    ls >"$dir/before"
    "$@" >"$dir/out" 2>"$dir/why"
    [ $? = 2 ] || fail "$* was not refused"
    grep -q -- "$text" "$dir/why" || fail "$*: $(cat "$dir/why")"
    ls >"$dir/after"
    cmp -s "$dir/before" "$dir/after" || fail "$* left a file"
}
touch out why before after set
small="--workload mixed:duration_s=60 --policy openvino-cb -q"

# A machine has every number assumed, with its source. It runs, and so does a machine made of it.
for like in core-ultra-7-155h rk3588 snapdragon-8elite apple-m1-max-24core; do
    "$x" new-soc of-$like --like $like >said || fail "new-soc --like $like"
    grep -q "^of-$like.json$" said || fail "the file is not named: $(cat said)"
    grep -q "made from $like by data sheet; \(on measured machines such transfers were off by\|no measured machines\)" said ||
        fail "how far transfers are off is not said: $(cat said)"
    "$x" list soc of-$like.json --json | tr -d '\n\t' | sed 's/}, *{/}\n{/g' >numbers
    [ "$(grep -c '"kind":"assumed"' numbers)" -gt 30 ] || fail "$like: too few numbers"
    grep -q '"kind":"\(measured\|fitted\)"' numbers && fail "$like: a number that nobody measured there"
    "$x" new-soc again-$like --like of-$like.json >said || fail "a machine of a machine"
    grep -q "\"like\":[^\"]*\"$like\"" again-$like.json || fail "what a machine of a machine is like was measured on the first"
    "$x" list kernels --soc $like >here && "$x" list kernels --soc of-$like.json >there || fail "kernels of $like"
done
# shellcheck disable=SC2086
"$x" run --soc of-core-ultra-7-155h.json $small >set || fail "a new machine does not run"
grep -q "openvino-cb on of-core-ultra-7-155h" set || fail "the run does not name the machine"
"$x" new-soc fast --ddr-peak 207 --memory 64 --peak igpu=18.44 --peak npu=11.5 -o f.json >said || fail "data sheet numbers"
"$x" list soc f.json | grep -q "ddr.peak  *207 " || fail "the memory's peak"
# twice the sibling's, to four digits: its memory was likely one of 103.5 GB/s
value() { "$x" list soc "$1" | awk -v p="soc.devices.igpu.runtimes.openvino-2025/8.$2" '$1 == p { print $2 }'; }
for number in row_fill bandwidth; do
    awk -v a="$(value core-ultra-7-155h $number)" -v b="$(value f.json $number)" 'BEGIN { exit !(b > 0 && b / a > 1.999 && b / a < 2.001) }' ||
        fail "$number is not twice the sibling's"
done
# 1024 rows take half the time: the rate is 2 (1 + 63.02 / 1024) / (1 + 31.51 / 1024) = 2.0597 times the sibling's
awk -v a="$(value core-ultra-7-155h rate)" -v b="$(value f.json rate)" 'BEGIN { exit !(b / a > 2.058 && b / a < 2.061) }' ||
    fail "the rate does not follow the peak at 1024 rows"
# It has twice the cores, which are the sibling's. So as many rows fill one, and all takes half the
# time.
"$x" new-soc wide --peak igpu=18.44:16 -o w.json >said || fail "cores"
for number in row_fill rate; do
    awk -v a="$(value core-ultra-7-155h $number)" -v b="$(value w.json $number)" -v x="$(test $number = rate && echo 2 || echo 1)" \
        'BEGIN { exit !(b > 0 && b / a > 0.999 * x && b / a < 1.001 * x) }' || fail "$number does not follow the cores"
done
refuse "is there already" "$x" new-soc fast -o f.json
# For a chip of another family only the family differs, and the machine says whose it is.
"$x" new-soc kin --like core-ultra-7-258v -o kin.json >said && grep -qx "family lunar-lake, as the similar chip's; --family F says another" said ||
    fail "the family that is copied is not said: $(cat said)"
"$x" new-soc kin --like core-ultra-7-258v --family arrow-lake-h -o other.json >said && grep -qx "family arrow-lake-h" said || fail "--family: $(cat said)"
[ "$(diff kin.json other.json | grep '^[<>]' | tr -d ' \t')" = "<\"family\":\"lunar-lake\",
>\"family\":\"arrow-lake-h\"," ] || fail "--family changes $(diff kin.json other.json | head -5)"
"$x" new-soc own --like apple-m1-max-24core --family of-its-own -o own.json >said && grep -q '"family":[^a-z]*"of-its-own"' own.json || fail "a family where the similar chip has none"
refuse "at most 31\|longer than" "$x" new-soc long --family aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa
# With one measured model the machine is slower than its sibling, its intervals are narrower, and it
# runs.
rows='model=llama-3-8b,bits=4,runtime=openvino-2025.3,ttft_ms@32=120,ttft_ms@1024=700,tpot_ms@1024=61.5'
"$x" new-soc one --like core-ultra-7-258v --measured "$rows" >said || fail "new-soc --measured"
grep -q "^igpu: updated by 3 measured rows of 1 model$" said || fail "what was measured is not said: $(cat said)"
grep -q "measure next" said || fail "what to measure next is not said: $(cat said)"
grep -q "igpu: made from" said && fail "a measured device is called a transfer"
"$x" list kernels --soc one.json --llm llama-3-8b | grep -q "^igpu decode: .*(3 rows measured on this machine)" || fail "intervals do not rest on the rows"
"$x" new-soc none --like core-ultra-7-258v >said || fail "new-soc"
width() { "$x" list soc "$1" | awk '$1 == "soc.devices.igpu.runtimes.openvino-2025/4.bandwidth" { print $5 / $4 }'; }
awk -v a="$(width none.json)" -v b="$(width one.json)" 'BEGIN { exit !(b > 1 && b < a) }' || fail "the range of the bandwidth did not shrink"
# One prompt at 4 bits takes twice the predicted time. So at 16 bits a prompt takes longer, too, by
# at most as much, and its interval is narrower than after a decode at 4 bits.
head='soc,device,runtime,model,weight_bits,act_bits,input_tokens,batch,metric,value'
"$x" new-soc slow --like core-ultra-7-258v --measured 'model=llama-3-8b,bits=4,ttft_ms@1024=1300' >said || fail "new-soc of a slow prompt"
"$x" new-soc pace --like core-ultra-7-258v --measured 'model=llama-3-8b,bits=4,tpot_ms@1024=61.5' >said || fail "new-soc of a decode"
asked() { # machine, bits: predicted ms, low, high
    printf '%s\n' "$head" "$1,igpu,openvino-2025.3,llama-3-8b,$2,16,1024,1,ttft_ms," >ask.csv
    "$x" validate --points ask.csv --soc "$1.json" | awk '$1 == 2 { print $9, $10, $12 }'
}
printf '%s ' "$(asked none 4)" "$(asked slow 4)" "$(asked none 16)" "$(asked slow 16)" "$(asked pace 16)" | awk '
    NF != 15 || !($4 > 1.9 * $1 && $10 > 1.3 * $7 && $10 / $7 < $4 / $1 && $12 / $11 < $15 / $14) { exit 1 }' ||
    fail "a row at 4 bits on prompts at 16 bits: $(asked none 16), then $(asked slow 16)"
# Without --like the times of a machine choose that machine, where they state a runtime. Its file predicts them.
for similar in core-ultra-7-165h core-ultra-9-288v core-ultra-5-338h; do
    version=openvino-$("$x" list soc $similar | sed -n 's,^soc.devices.igpu.runtimes.openvino-\([0-9.]*\)/4.rate.*,\1,p' | sed -n 1p)
    row="igpu,$version,llama-2-7b,4,16,1024,1"
    printf '%s\n' "$head" "$similar,$row,ttft_ms," "$similar,$row,tpot_ms," >ask.csv
    "$x" validate --points ask.csv --soc $similar --json -q >its.json
    times=$(python3 -c 'import json; print(",".join("%s@1024=%.9g" % (r["metric"], r["predicted"]) for r in json.load(open("its.json"))["rows"]))')
    "$x" new-soc its --measured "model=llama-2-7b,bits=4,runtime=$version,$times" -o "its-$similar.json" >said || fail "times of $similar: $times"
    grep -q "^similar chip: $similar, under whose copy the measured rows are most probable" said || fail "$similar is not chosen by its times: $(head -2 said)"
done
# Rows of two devices count together: the ratio of two machines is the product of those by each device's rows.
on_igpu="model=llama-3.2-3b,bits=4,runtime=llama.cpp-vulkan-9187,prefill_tok_s@1024=1550,decode_tok_s@1024=56"
on_npu="model=llama-3.2-3b,bits=4,device=npu,runtime=fastflowlm-0.9.30,prefill_tok_s@1024=800,decode_tok_s@1024=26"
likelier() { # --measured ...: how much likelier the 395 is than the HX 370
    rm -f which.json
    "$x" new-soc its "$@" -o which.json | awk 'NR == 1 {
        r["" $3] = 1
        for (i = 4; i < NF; i++) { if ($(i + 1) == "x") { sub(/,$/, "", $(i + 2)); r["" $i ","] = $(i + 2) } }
        print r["ryzen-ai-max-395,"] / r["ryzen-ai-9-hx-370,"] }'
}
echo "$(likelier --measured "$on_igpu") $(likelier --measured "$on_npu") $(likelier --measured "$on_igpu" --measured "$on_npu")" |
    awk '!($2 < 0.95 && $3 / ($1 * $2) > 0.9 && $3 / ($1 * $2) < 1.1) { print "ratios " $0; exit 1 }' || fail "rows of two devices"
# Copies are averaged: times that several machines explain give a bandwidth between those of each machine alone.
of_bandwidth() { "$x" list soc "$1" | awk '$1 == "soc.devices.igpu.runtimes.openvino-2025/4.bandwidth" { print $2 }'; }
rows='model=llama-2-7b,bits=4,runtime=openvino-2025.3,tpot_ms@1024=75'
"$x" new-soc its --measured "$rows" -o averaged.json >said || fail "times that two machines explain"
grep -q "averaged with " said || fail "nothing is averaged: $(head -1 said)"
for similar in $(sed -n 's/^similar chip: \([^,]*\),.*/\1/p' said) $(sed -n '1s/.*averaged with //; 1s/, /\n/g; 1p' said | sed 's/ x .*//'); do
    "$x" new-soc its --like "$similar" --measured "$rows" -o "only-$similar.json" >set || fail "--like $similar"
    awk '$2 == "openvino-2025" && $4 == "bandwidth" { print "'"$similar"'", $6 }' set >>befores
    of_bandwidth "only-$similar.json"
done | sort -g >each
# The column `before` has the average: the mean of logarithms, by weights of two digits.
awk 'FILENAME == "befores" { ln[$1] = log($2); next }
    FNR == 1 { sub(/,/, "", $3); w[$3] = 1; for (i = 4; i < NF; i++) { if ($(i + 1) == "x") { w[$i] = $(i + 2) + 0 } } }
    $2 == "openvino-2025" && $4 == "bandwidth" { for (k in ln) { all += w[k]; sum += w[k] * ln[k] }; d = log($6) - sum / all; ok = all > 2 && d < 0.003 && d > -0.003 }
    END { exit !ok }' \
    befores said || fail "the average before the rows: $(cat befores said)"
of_bandwidth averaged.json | awk 'NR == FNR { v[NR] = $1; n = NR; next } !($1 > v[1] && $1 < v[n]) { exit 1 }' each - || fail "an average of $(cat each): $(of_bandwidth averaged.json)"
# Copies of other machines are no candidates (the 268V is the 258V's), and of equal ones that which was measured is taken.
"$x" new-soc its --measured "model=llama-2-7b,bits=4,runtime=openvino-2025.3,ttft_ms@1024=700,tpot_ms@1024=50" -o lunar.json >said || fail "times of Lunar Lake"
grep -q "^similar chip: .*268v" said && fail "a copy is a candidate: $(head -1 said)"
"$x" new-soc its --measured "model=llama-3.2-3b,bits=4,device=npu,runtime=fastflowlm-0.9.30,prefill_tok_s@1024=800,decode_tok_s@1024=24" -o xdna.json >said ||
    fail "times of an NPU"
grep -q "^similar chip: ryzen-ai-xdna2, .*ryzen-ai-9-hx-370 x 1" said || fail "of equal machines that which was measured is taken: $(head -1 said)"
"$x" new-soc its --measured 'model=llama-2-7b,bits=4,tpot_ms@1024=60' -o usual.json >said && grep -q "as the similar chip's" said && grep -q "powers are those of core-ultra-7-155h" said ||
    fail "a row without a runtime: $(cat said)"
grep -q "^similar chip" said && fail "a row without a runtime chooses a chip"
# shellcheck disable=SC2086
"$x" run --soc one.json $small >set || fail "an updated machine does not run"
"$x" compare --policy fcfs --policy openvino-cb --soc one.json --workload mixed:duration_s=60 --replications 2 --uncertainty 16 -q >set ||
    fail "an updated machine is not drawn"
"$x" calibrate --soc one.json --measured 'model=phi-2,bits=8,ttft_ms@1024=300' -o two.json >said || fail "calibrate --measured"
grep -q "updated by 1 measured row of 1 model" said || fail "calibrate does not say what it took: $(cat said)"
"$x" new-soc later --like core-ultra-7-155h --measured 'model=phi-2,bits=4,runtime=openvino-2026.0,ttft_ms@1024=900' >said ||
    fail "a row of a later version"
grep -q "the nearest version to openvino-2026.0 is openvino-2025, which is updated" said || fail "which version is updated: $(cat said)"
# llama-bench states its build, which is nearer to 6111 than to 9187, the default. Runs use the
# measured one.
printf '%s\n' '| model | backend | ngl | test | t/s |' '| --- | --- | --- | --- | --- |' \
    '| qwen3 4B Q4_K - Medium | Vulkan | 99 | tg128 | 30.2 |' '' 'build: e6f3a1b (7210)' >bench.md
"$x" new-soc bench --like ryzen-ai-max-395 --ddr-peak 136.5 --measured file=bench.md,model=qwen3-4b >said || fail "new-soc of llama-bench"
grep -q "igpu: runs use llama.cpp-vulkan-6111, which was measured, instead of llama.cpp-vulkan-9187" said || fail "which runtime runs use: $(cat said)"
grep -q "powers are those of ryzen-ai-max-395 (npu 0.9 W in prompts, 1.4 in decodes; igpu 103 W in prompts, 94 in decodes; cpu " said ||
    fail "whose powers these are: $(cat said)"
"$x" list kernels --soc bench.json --llm qwen3-4b:bits=4 | grep -q "^igpu decode: .*(1 row measured on this machine)" || fail "a run does not use the measured runtime"
"$x" new-soc named --like ryzen-ai-max-395 --ddr-peak 136.5 --measured file=bench.md,model=qwen3-4b,runtime=llama.cpp-vulkan-9187 >said ||
    fail "a runtime named next to a file"
grep -q "runs use" said && fail "the default runtime was measured, and changed: $(cat said)"
# Its Markdown names an architecture and a class of size, which several models share: the number of parameters decides.
labelled() { # the label, the parameters, --measured, tokens per second
    size=$(echo "$2" | awk '{ printf "%.2f MiB", $1 * ($2 == "B" ? 1e9 : 1e6) * 0.5625 / 1048576 }') # Q4_0
    printf '%s\n' '| model | size | params | backend | ngl | test | t/s |' '| --- | --- | --- | --- | --- | --- | --- |' \
        "| $1 | $size | $2 | Vulkan | 99 | tg128 | ${4:-17.2} |" '' 'build: e6f3a1b (9282)' >bench.md
    rm -f other.json
    "$x" new-soc other --like ryzen-ai-9-hx-370 --measured "${3:-bench.md}" 2>&1
}
numbers() { grep -E "^ *igpu .*(rate|bandwidth|launch) " said; }
labelled "llama 8B Q4_0" "8.03 B" >said || fail "llama 8B: $(cat said)"
numbers >label
labelled "llama 8B Q4_0" "8.03 B" "file=bench.md,model=llama-3.1-8b" >said || fail "llama-3.1-8b: $(cat said)"
numbers | cmp -s - label || fail "llama 8B of 8.03e9 weights is not Llama 3.1 8B: $(diff said label)"
# Mistral 7B has 7.24e9 weights and TinyLlama 1.10e9, and llama.cpp calls them as Llama 2 7B and Llama 3.2 1B
for wrong in "7B:7.24 B:mistral-7b" "1B:1.10 B:tiny-llama-1.1b"; do
    params=${wrong#*:}
    labelled "llama ${wrong%%:*} Q4_0" "${params%:*}" >said && fail "llama $wrong is taken"
    grep -q "as these have: .*${params#*:}" said || fail "llama $wrong: $(cat said)"
done
# Qwen2.5 0.5B has 494.03e6, or with a head of its own next to the embedding 151936 x 896 more
for params in "494.03 M" "630.17 M"; do
    labelled "qwen2 0.5B Q4_0" "$params" bench.md 120 >said || fail "a head that is stored twice: $(cat said)"
done
printf '[{"model_filename": "llama-7b-Q4_0.gguf", "model_type": "llama 7B Q4_0", "model_n_params": 7241732096, "n_prompt": 0, "n_gen": 128,
    "avg_ts": 17.2, "backends": "Vulkan", "build_number": 9282}]' >bench.json.txt
refuse "bench.json.txt: .0.: model llama-7b on device igpu: it has 6.738e+09 weights here; the row states 7.242e+09" \
    "$x" new-soc other2 --like ryzen-ai-9-hx-370 --measured bench.json.txt
refuse "runtime foo at 4 bits: other has no such entry; it has openvino-2025/8, openvino-2025/4, openvino-2025/16. --measured 'runtime=NAME,...' next to file= or model= says which one the row is of" "$x" new-soc other --measured 'model=phi-2,bits=4,runtime=foo,ttft_ms@32=9'
refuse "no file for this model" "$x" new-soc other --measured 'model=nonesuch,bits=4,ttft_ms@32=9'
printf '%s\n' soc,device,runtime,model,weight_bits,act_bits,input_tokens,batch,metric,value other,igpu,openvino-2025,llama-3-8b,4,16,512,1,prefill_tps,400 >"$dir/tps.csv"
refuse "tps.csv:2: metric prefill_tps is no time of a prefill or a decode: ttft_ms, tpot_ms, prefill_tok_s or decode_tok_s" "$x" new-soc other --measured "$dir/tps.csv"
sed -i 's/openvino-2025//' "$dir/tps.csv"
refuse "tps.csv:2: column runtime: must not be empty" "$x" new-soc other --measured "$dir/tps.csv"
refuse "has [0-9.]*: not possible" "$x" new-soc other --measured 'model=llama-3-8b,bits=4,tpot_ms@1024=3'
refuse "another machine or model, or a mistake" "$x" new-soc other --measured 'model=llama-3-8b,bits=4,tpot_ms@1024=30000'
refuse "measured ttft_ms@1024 nan: must be a number" "$x" new-soc other --measured 'model=phi-2,bits=4,tpot_ms@32=9,ttft_ms@1024=nan'
refuse "'bla' is none of" "$x" new-soc other --measured 'model=phi-2,bits=4,bla=9'
refuse "nonesuch.csv" "$x" new-soc other --measured nonesuch.csv
refuse "has no such device; it has npu, igpu, cpu" "$x" new-soc other --peak tpu=3
refuse "DEVICE=TFLOP/s" "$x" new-soc other --peak igpu
refuse "must be a whole number" "$x" new-soc other --peak igpu=9.2:0
refuse "not a shipped name" "$x" new-soc other --like nope
refuse "did you mean core-ultra-7-155h?" "$x" new-soc other --like core-ultra-7-155
# MB/s, MB and GFLOP/s of a data sheet
refuse "xpusim: error: --ddr-peak 89600: core-ultra-7-155h has 89.6 GB/s: another unit?" "$x" new-soc other --ddr-peak 89600
refuse "xpusim: error: --memory 32768: core-ultra-7-155h has 32 GB: another unit?" "$x" new-soc other --memory 32768
refuse "xpusim: error: --peak igpu: 9220: core-ultra-7-155h has 9.22 TFLOP/s: another unit?" "$x" new-soc other --peak igpu=9220
refuse "letters, digits" "$x" new-soc "a b"
refuse "ending in .json" "$x" new-soc other -o other
refuse "NAME is missing" "$x" new-soc

# a model: its config.json as it is, and as a file
mkdir My-Model
cat >My-Model/config.json <<'EOF'
{"architectures": ["LlamaForCausalLM"], "model_type": "llama", "hidden_size": 3072, "intermediate_size": 8192,
 "num_attention_heads": 24, "num_key_value_heads": 8, "head_dim": 128, "num_hidden_layers": 28, "vocab_size": 128256,
 "tie_word_embeddings": true, "torch_dtype": "bfloat16", "rope_scaling": {"factor": 32.0}, "bos_token_id": 128000}
EOF
"$x" new-llm mine --hf My-Model/config.json --bits 8 >said || fail "new-llm"
grep -q "^3.213e+09 weights a token" said || fail "Llama 3.2 3B has 2818572288 + 394002432 weights: $(cat said)"
# of the same shape and width as the shipped file: the same run, to the byte, but for the name
# shellcheck disable=SC2086
"$x" run --llm mine.json $small | sed 's/ mine$//; s/config=[0-9a-f]*//' >here
# shellcheck disable=SC2086
"$x" run --llm llama-3.2-3b $small | sed 's/ llama-3.2-3b$//; s/config=[0-9a-f]*//' >there
cmp -s here there || fail "Llama 3.2 3B by its config.json runs otherwise: $(diff here there)"
"$x" list llm My-Model/config.json | grep -q "llm.body_bytes_per_weight  *2 " || fail "list llm reads no config.json"
# shellcheck disable=SC2086
"$x" run --llm My-Model/config.json $small | grep -q "on core-ultra-5-125h, my-model" || fail "--llm reads no config.json"
# it can be measured: rows of the file are those of the shipped model of its shape
for model in mine.json llama-3.2-3b; do
    rm -f other.json
    "$x" new-soc other --measured "model=$model,bits=8,ttft_ms@1024=1400,tpot_ms@1024=60" >said || fail "rows of $model"
    grep -E "^ *igpu " said >"$model.said"
    printf '%s\n' soc,device,runtime,model,weight_bits,act_bits,input_tokens,batch,metric,value "other,igpu,openvino-2025,$model,8,16,512,1,tpot_ms," >ask.csv
    "$x" validate --points ask.csv --soc other.json | sed -n "s/.*$model  *8 //p" >>"$model.said"
    { # a fit takes four rows of two models
        sed -n 1p ask.csv
        for row in $model,8,16,512,1,tpot_ms,55 $model,8,16,1024,1,ttft_ms,1300 llama-3.1-8b,8,16,512,1,tpot_ms,130 llama-3.1-8b,8,16,1024,1,ttft_ms,3300; do
            echo "core-ultra-7-155h,igpu,openvino-2025,$row"
        done
    } >fit.csv
    "$x" calibrate --points fit.csv --soc core-ultra-7-155h >>"$model.said" || fail "a fit to rows of $model"
done
cmp -s mine.json.said llama-3.2-3b.said && [ "$(wc -l <mine.json.said)" -gt 8 ] || fail "rows of a file: $(diff mine.json.said llama-3.2-3b.said)"
refuse "gone.json: No such file" "$x" new-soc other3 --measured "model=gone.json,bits=8,tpot_ms@1024=60"
refuse "is there already" "$x" new-llm mine --hf My-Model/config.json
refuse "gguf FILE is needed" "$x" new-llm other
# a GGUF file that llama.cpp's server loads (tests/originals): one layer 32 wide with four products and an FFN of three, in 32 bit
PYTHONPATH=$root/tests/originals PYTHONDONTWRITEBYTECODE=1 python3 -c 'import pathlib, tiny_gguf; tiny_gguf.write(pathlib.Path("tiny.gguf"))'
"$x" new-llm tiny --gguf tiny.gguf >said || fail "new-llm --gguf"
grep -q "; 32-bit weights of 4 bytes" said || fail "a file of 32-bit floats: $(cat said)"
"$x" list llm tiny.json --json >said
python3 - said <<'EOF' || fail "the numbers of tiny.gguf"
import json, sys
got = {r["path"]: r["value"] for r in json.load(open(sys.argv[1]))}
want = {"layers": 1, "hidden": 32, "heads": 2, "kv_heads": 2, "head_dim": 16, "ffn_hidden": 32, "vocab": 300, "max_context": 8192}
bad = {k: (got.get("llm." + k), v) for k, v in want.items() if got.get("llm." + k) != v}
print(bad) if bad else None
sys.exit(bool(bad))
EOF
# the reader's own test is tests/unit/check_llm_gguf.c
printf 'GGUF\003\000\000\000' >cut.gguf
refuse "cut.gguf: ends before its list of tensors does" "$x" new-llm other --gguf cut.gguf
refuse "cut.gguf: is a GGUF file: xpusim new-llm NAME --gguf" "$x" run --policy fcfs --llm cut.gguf
refuse "no config.json of Hugging Face" "$x" new-llm other --hf mine.json
sed 's/"llama"/"nonesuch"/' My-Model/config.json >My-Model/other.json
refuse 'other.json: model_type: "nonesuch" is not known' "$x" new-llm other --hf My-Model/other.json
refuse 'other.json: model_type: "nonesuch" is not known' "$x" run --policy fcfs --llm My-Model/other.json
refuse "do not go with weight_bits 4" "$x" run --policy fcfs --set llm.weight_bits=4
exit $bad
