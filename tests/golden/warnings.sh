#!/bin/sh
# Every result says the limits of its numbers. Times may be extrapolated (of which policy and
# device, how much, in which direction), and the machine may have no numbers for a weight width.
set -u
cd "$(dirname "$0")/../.." || exit 2
x=${BUILD:-build}/xpusim
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
bad=0
fail() {
    echo "FAILED: $*"
    bad=1
}
soc=core-ultra-7-258v
long=mixed:reactive_input_scale=8,duration_s=300
range="outside the calibrated range, where times are extrapolated"
width="npu has no parameters for 8-bit weights"
says() { # file, text
    grep -qF "$2" "$1" || fail "$1 does not say: $2"
}
# A machine without a calibrated range, and short prompts inside one, say nothing.
silent() { # file
    grep -qF "$range" "$1" && fail "$1 warns without a reason"
}
tell() { # name, arguments of a command that is asked twice
    name=$1
    shift
    $x "$@" -q >"$dir/$name" 2>&1 || fail "$name"
    $x "$@" -q --json >"$dir/$name.json" 2>/dev/null || fail "$name --json"
    says "$dir/$name" "$range"
    says "$dir/$name" "$width"
    python3 - "$dir/$name.json" "$range" "$width" <<'EOF' || fail "$name --json has no warnings"
import json, sys
said = json.load(open(sys.argv[1]))["warnings"]
sys.exit(not all(any(text in w for w in said) for text in sys.argv[2:]))
EOF
}
two="--policy openvino-cb --policy agent-xpu-v2"
tell run run --soc $soc --policy fcfs --workload $long
# shellcheck disable=SC2086
tell compare compare --soc $soc $two --workload $long --replications 2
says "$dir/compare" "openvino-cb: igpu "
says "$dir/compare" "; agent-xpu-v2: igpu "
says "$dir/compare" "(longer contexts, more rows)"
tell explain explain --soc $soc --policy fcfs --workload $long --request 1
tell search search --soc $soc --policy fcfs --slo 'reactive.ttft_s.p90<=500' --workload $long --replications 2
# The printed share is the metric's: mean over the replications.
python3 - "$dir/compare.json" <<'EOF' || fail "the share is not the metric's mean"
import json, sys
d = json.load(open(sys.argv[1]))
mean = d["policies"]["openvino-cb"]["igpu.extrapolated_frac"]["mean"]
text = [w for w in d["warnings"] if "calibrated range" in w][0]
told = float(text.split("openvino-cb: igpu ")[1].split(" %")[0])
sys.exit(not (mean > 0.1 and abs(told - 100 * mean) < 0.1))
EOF
$x report "$dir/compare.json" -o "$dir/page.html" 2>/dev/null || fail "report"
says "$dir/page.html" "$range"

# A sweep keeps the data of the warning, for any metrics in its file, and so does a result that is
# read back from the store.
cat >"$dir/spec.json" <<EOF
{"name": "t", "base": {"soc": "$soc", "workload": "$long"}, "axes": {"policy": ["fcfs", "openvino-cb"]},
 "replications": 2, "metrics": ["reactive.*", "proactive.*", "all.*", "energy*"]}
EOF
$x sweep "$dir/spec.json" -o "$dir/s.db" 2>"$dir/sweep" >/dev/null || fail "sweep"
says "$dir/sweep" "$range"
says "$dir/sweep" '{"policy":"openvino-cb"}'
$x compare --store "$dir/s.db" >"$dir/stored" 2>&1 || fail "compare --store"
says "$dir/stored" "openvino-cb: igpu "
grep -q "fcfs  *[0-9] *[0-9] *[0-9] *0$" "$dir/stored" || fail "the statuses of the runs are not kept"

# Metrics name a device by its own name where a machine has two of a kind. A sweep prints the share
# that a run of the same seed has.
python3 - $soc "$dir" <<'EOF'
import copy, json, sys
d = json.load(open(f"hwmodels/soc/{sys.argv[1]}.json"))
igpu = next(v for v in d["devices"] if v["name"] == "igpu")
twin = copy.deepcopy(igpu)
igpu["name"], twin["name"] = "igpu-a", "igpu-b"
d["devices"].insert(d["devices"].index(igpu) + 1, twin)
json.dump(d, open(f"{sys.argv[2]}/twins.json", "w"))
EOF
echo '{"name": "t", "base": {"soc": "./twins.json", "policy": "fcfs", "workload": "'$long'"}}' >"$dir/twins"
$x run --soc "$dir/twins.json" --policy fcfs --workload $long -q >"$dir/run" 2>&1
share=$(grep -o 'igpu-a [0-9.]* % of its kernel time' "$dir/run")
[ -n "$share" ] || fail "a run warns of no device of a kind"
$x sweep "$dir/twins" -o "$dir/twins.db" 2>"$dir/sweep" >/dev/null || fail "sweep of two devices of a kind"
says "$dir/sweep" "$share"

$x run --policy fcfs --workload $long -q >"$dir/unbounded" 2>&1
silent "$dir/unbounded"
$x run --soc $soc --policy fcfs -q --workload mixed:reactive_input_scale=0.1,proactive_input_scale=0.1,output_scale=0.2,duration_s=100 \
    >"$dir/short" 2>&1 || fail "short prompts"
silent "$dir/short"

# Energy has warnings: rails leave the memory out, and two meters compare nothing. One meter
# everywhere is no warning.
short="--policy fcfs --workload mixed:duration_s=60"
meters() { # text that compare must print and put into its JSON, or -, then arguments
    want=$1
    shift
    $x compare --policy edf $short --replications 2 "$@" >"$dir/meters" 2>&1 || fail "compare $*"
    $x compare --policy edf $short --replications 2 --json "$@" >"$dir/meters.json" 2>/dev/null
    for out in "$dir/meters" "$dir/meters.json"; do
        if [ "$want" = - ]; then
            grep -q "energy co" "$out" && fail "warns of meters: $*"
        else
            says "$out" "$want"
        fi
    done
}
meters - --soc core-ultra-5-125h
meters - --soc snapdragon-8gen3
meters "energy counts the devices' own rails only" --soc ryzen-ai-xdna2
meters "npu rail, igpu battery, cpu battery" --soc snapdragon-8gen3 --set soc.devices.npu.meter=rail
# The work after the last arrival is a share of the time of arrivals: two requests a second apart,
# and one alone.
for n in 1 2; do
    { echo '# xpusim-trace v1'; echo 'request_id,session_id,turn,class,arrival_s,gap_s,input_tokens,output_tokens,prefix_tokens'
      seq 0 $((n - 1)) | sed 's/.*/&,&,0,reactive,&,,100,10,0/'; } >"$dir/t$n.csv"
    $x run --policy fcfs --trace "$dir/t$n.csv" --json -q --requests "$dir/r$n.csv" >"$dir/$n.json" || fail "$n requests"
done
python3 - "$dir" <<'EOF' || fail "the share of the arrival window"
import csv, json, re, sys
shown = [next(w for w in json.load(open(f"{sys.argv[1]}/{n}.json"))["warnings"] if w.startswith("UNDECIDED")) for n in (1, 2)]
assert shown[0] == "UNDECIDED: all requests arrived at one instant, where a stable load and an overload look the same", shown
ends = [float(r["arrival_s"]) + float(r["e2e_s"]) for r in csv.DictReader(l for l in open(f"{sys.argv[1]}/r2.csv") if l[0] != "#")]
assert f"took another {100 * (max(ends) - 1):.0f} % of the arrival window" in shown[1], (shown, ends)
EOF
# The idle machine draws 100 J in less than half a minute, so every run ends so, at every rate.
echo '{"machine": [{"at_s": 0, "battery_j": 100, "battery_full_j": 100, "source": "battery"}]}' >"$dir/flat.json"
search="search --policy edf --workload mixed:duration_s=60 --slo reactive.ttft_s.p90<=900 --replications 2 --precision 4 -q"
# shellcheck disable=SC2086
$x $search --machine "$dir/flat.json" >"$dir/flat" 2>&1
grep -q "^edf: the battery was empty at the end of [1-9][0-9]* runs, which count as overloaded$" "$dir/flat" || fail "an empty battery in a search: $(cat "$dir/flat")"
$x compare --policy edf --policy fcfs --workload mixed:duration_s=60 --machine "$dir/flat.json" --uncertainty 16 --replications 2 --metric all.finished -q >"$dir/flat"
says "$dir/flat" "64 of 64 runs on these machines ended with requests unserved; latencies do not cover them"
# shellcheck disable=SC2086
$x $search 2>&1 | grep -q "battery" && fail "a battery in a search without one"
# A workload without random numbers gives one run, however often it is simulated: no interval, and
# nothing that is shown.
$x compare --policy fcfs --policy edf --workload w1:n=8 --replications 4 -q >"$dir/one"
says "$dir/one" "all 4 replications are the same run, because nothing in it depends on the seed. They count as one observation"
says "$dir/one" "(n=1, no interval)"
grep -F "(significant)" "$dir/one" && fail "one run shows a difference"
# llm.npu decodes on the CPU, whose runtime is llama.cpp. EDF has the iGPU alone.
$x compare --policy edf --policy llm-npu --policy srpt --workload mixed:duration_s=60 --replications 2 -q >"$dir/makers" 2>&1
says "$dir/makers" "llm-npu: npu (openvino-2025), cpu (llama.cpp) read one copy of the weights and one KV here"
[ "$(grep -c "read one copy" "$dir/makers")" = 1 ] || fail "runtimes of two makers: $(cat "$dir/makers")"
[ "$bad" = 0 ] && echo "warnings: ok"
exit "$bad"
