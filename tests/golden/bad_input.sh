#!/bin/sh
# Bad input of every kind gives exit 2 and a message that names the place, leaves nothing
# half-written, and never crashes.
set -u
cd "$(dirname "$0")/../.." || exit 2
x=${BUILD:-build}/xpusim
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
bad=0
export XPUSIM_ENGINES="$dir/none" # the same refusals on a machine without engines

refuse() { # text the message must hold, command...
    want=$1
    shift
    "$@" >"$dir/out" 2>"$dir/err"
    status=$?
    case $(cat "$dir/err") in # grep takes 30 ms for a name of 5,000 letters
    *"$want"*) ;;
    *) status="$status, but other words" ;;
    esac
    if [ "$status" != 2 ]; then
        echo "FAILED (exit $status, wanted 2 and \"$want\"): $*"
        cat "$dir/err"
        bad=1
    fi
}

head="request_id,session_id,turn,class,arrival_s,gap_s,input_tokens,output_tokens,prefix_tokens"
row() { printf '# xpusim-trace v1\n%s\n%s\n' "$head" "$1" >"$dir/t.csv"; }
run="$x run --policy fcfs --trace $dir/t.csv"

# events of the machine: file and key
machine() { # the event, text that the message holds
    printf '{"machine": [{"at_s": 1, "power_w": 9}, %s]}' "$1" >"$dir/machine.json"
    refuse "$dir/machine.json: machine[1].$2" $x run --policy fcfs --workload w1:n=2 --machine "$dir/machine.json"
}
machine '{"at_s": -1, "power_w": 9}' "at_s: must be"
machine '{"power_w": 9}' "at_s: missing"
machine '{"at_s": 2}' "at_s: the event sets nothing"
machine '{"at_s": 2, "powr_w": 9, "window": "open"}' "powr_w: unknown key; did you mean power_w?"
machine '{"at_s": 2, "memory_mib": "much"}' "memory_mib: "
machine '{"at_s": 2, "window": "ajar"}' "window: "
machine '{"at_s": 2, "source": "battery"}' "source: battery needs battery_j"
machine '{"at_s": 2, "battery_j": 0}' "battery_j: 0 needs battery_full_j"
machine '{"at_s": 2, "battery_j": 9, "battery_full_j": 8}' "battery_full_j: must be at least"
machine '{"at_s": 2, "power_w": 9, "until_s": 3}' "until_s: needs every_s"
machine '{"at_s": 2, "power_w": 9, "every_s": 1, "until_s": 1}' "until_s: must not be before at_s"
echo '{}' >"$dir/machine.json"
refuse "machine: missing" $x run --policy fcfs --machine "$dir/machine.json"
refuse "no/machine.json" $x run --policy fcfs --machine no/machine.json
echo '{"machine": [{"at_s": 1, "frames_per_s": 60}]}' >"$dir/machine.json"
refuse "machine[0].frames_per_s: core-ultra-5-125h has no GPU that frames can take" $x run --policy fcfs --set soc.devices.igpu.sharing=time_shared --machine "$dir/machine.json"
printf '# xpusim-trace v1 machine=[{\n%s\n0,0,0,reactive,0,,9,9,0\n' "$head" >"$dir/t.csv"
refuse "$dir/t.csv: 1: machine=: is no JSON" $run
printf '# xpusim-trace v1 machine=[{"at_s":1}]\n%s\n0,0,0,reactive,0,,9,9,0\n' "$head" >"$dir/t.csv"
refuse "$dir/t.csv: machine[0].at_s: the event sets nothing" $run

refuse "no command is called trace impot" $x help trace impot
refuse "no command is called compare fcfs" $x help compare fcfs
refuse "no figure is called zzzz (\`xpusim plot list\` shows them)" $x plot zzzz
# The message suggests the likely name, for every kind of name.
meant() { # name, command...
    name=$1
    shift
    refuse "; did you mean $name?" "$@"
}
meant compare $x comapre
meant --policy $x run --polcy fcfs
meant fcfs $x run --policy fcsf
meant b_rf $x run --policy agent-xpu-v2:b_ff=1
meant reactive.ttft_s.mean $x compare --policy fcfs --policy edf --metric reactive.tft_s.mean
meant reactive.ttft_s.mean $x compare --policy fcfs --policy edf --metric reactive.ttft_s # not .n, the nearest by letters
meant reactive.e2e_s.mean $x compare --policy fcfs --policy edf --metric reactive.e2e
meant energy_j $x compare --policy fcfs --policy edf --metric energy
meant latency-rate $x plot latncy-rate
meant metric $x list metrics
meant core-ultra-7-155h $x run --policy fcfs --soc core-ultra-7-155
meant llama-3.1-8b $x run --policy fcfs --llm lama-3.1-8b
refuse "Z9" $x claims Z9
refuse "nonesuch.json" $x claims --file nonesuch.json
refuse "replications" $x claims A6 --replications 0
refuse "none of these claims has a headline" $x claims A6 --headline
refuse "is for --headline" $x claims B14 --uncertainty 4
refuse "--replications 2 or more" $x claims B14 --headline --uncertainty 4 --replications 1
refuse "excludes --fit" $x claims --headline --list
refuse "--policy is missing" $x search --slo "reactive.e2e_s.p90<=20"
refuse "--policy is missing" $x diff
refuse "not a decision log" $x diff README.md README.md
refuse "two decision logs" $x diff README.md
refuse "exclude each other" $x diff --policy fcfs a.log b.log
refuse "no policy is called" $x diff --policy fcfs --b-policy nonesuch
refuse "nowhere" $x diff --policy fcfs --b-set soc.nowhere=1
refuse "not a program" $x diff --policy fcfs --against nonesuch
refuse "-o is missing" $x bisect --policy fcfs
refuse "no/such/folder" $x bisect --policy fcfs --b-policy edf --workload w1:n=2 -o "$dir/no/such/folder/x.csv"
refuse "--slo is missing" $x search --policy fcfs
refuse "METRIC<=VALUE" $x search --policy fcfs --slo "reactive.e2e_s.p90=20"
refuse "no metric is called so" $x search --policy fcfs --slo "nonesuch<=20"
refuse "did you mean reactive.ttft_s.mean?" $x search --policy fcfs --slo "reactive.ttft_s<=20"
refuse "--ttft-slo" $x run --policy fcfs --ttft-slo -1
refuse "--baseline is missing" $x gate
refuse "nonesuch.json" $x gate --baseline nonesuch.json
refuse "exclude each other" $x gate --baseline experiments/gate/policies.json --against $x --update
refuse "not a program" $x gate --baseline experiments/gate/policies.json --against nonesuch
printf '{"format": 1, "groups": [{"name": "g", "soc": "nonesuch", "llm": "llama-3.2-3b", "workload": "w1:n=2", "test": "exact", "seed": 1, "policies": ["fcfs"]}]}' >"$dir/g.json"
refuse "holds no results" $x gate --baseline "$dir/g.json"
refuse "nonesuch" $x gate --baseline "$dir/g.json" --update
refuse "frames_per_s" $x run --policy fcfs --set sim.graphics.frames_per_s=-60
refuse "reserve_time_frac" $x run --policy fcfs --set sim.graphics.reserve_time_frac=1
refuse "must be one of affinity" $x characterize weather
refuse "static shapes" $x characterize chunk --soc w1-reference
refuse "no policy" $x run --policy nonesuch
refuse "b_rf" $x run --policy agent-xpu-v2:b_rf=-1
refuse "b_rf" $x run --policy agent-xpu-v2:b_rf=nan
refuse "nokey" $x run --policy agent-xpu-v2:nokey=1
refuse "--seed" $x run --policy fcfs --seed -3
refuse "nonesuch" $x run --policy fcfs --soc nonesuch
refuse "nonesuch" $x run --policy fcfs --llm nonesuch
refuse "nowhere" $x run --policy fcfs --set soc.nowhere=1
refuse "core-ultra-5-125h.json with --set: idle_power.value: must be a number from 0" $x run --policy fcfs --set soc.idle_power=-5
for option in requests decisions timeline; do # before the run, which may take long
    refuse "$dir/no/such: cannot write: No such file or directory" $x run --policy edf --workload w1:n=2 --$option "$dir/no/such"
    [ ! -s "$dir/out" ] || { echo "FAILED: --$option cannot be written, and the run goes on"; bad=1; }
done
refuse "no policy is called 'edf,srpt'; each --policy names one; there are agent-xpu-v1" $x compare --policy edf,srpt
refuse "no policy is called 'EDF'; did you mean edf?; there are agent-xpu-v1" $x run --policy EDF
refuse "unknown key \"duration\"; did you mean duration_s? (known: " $x run --policy edf --workload mixed:duration=9
refuse "; a recorded trace goes with --trace" $x run --policy edf --workload "$dir/t.csv"
python3 -c 'import json, sys; s = json.load(open("hwmodels/soc/rk3588.json")); s["idle_power"] = 3; json.dump(s, open(sys.argv[1], "w"))' "$dir/bare.json"
refuse "bare.json: idle_power: must be an object {\"value\": .., \"unit\": \"W\", " $x run --policy edf --soc "$dir/bare.json"
refuse "llama-3.2-3b.json with --set: layers: " $x run --policy fcfs --set llm.layers=0
refuse "idle_power" $x run --policy fcfs --set soc.idle_power=inf
refuse "idle_power" $x run --policy fcfs --set soc.idle_power=text
refuse "nonesuch" $x run --policy fcfs --set sim.contention=nonesuch
refuse "$dir/none.csv" $x run --policy fcfs --trace "$dir/none.csv"
refuse "reactive_per_min" $x run --policy fcfs --workload mixed:reactive_per_min=-1
refuse "reactive_per_min" $x run --policy fcfs --workload mixed:reactive_per_min=nan
refuse "zero" $x run --policy fcfs --workload mixed:reactive_per_min=0,proactive_per_min=0
refuse "bogus" $x run --policy fcfs --workload mixed:bogus=1
refuse "at most" $x run --policy fcfs --workload mixed:reactive_per_min=1e6,duration_s=1e8
refuse "nonesuch" $x run --policy fcfs --workload mixed:reactive=nonesuch
refuse "w1" $x run --policy fcfs --workload w1:n=0
: >"$dir/t.csv"
refuse "empty" $run
printf '# xpusim-trace v1\n%s\n' "$head" >"$dir/t.csv"
refuse "no requests" $run
printf '# xpusim-trace v9\n%s\n0,0,0,reactive,0,,5,5,0\n' "$head" >"$dir/t.csv"
refuse "version" $run
row "0,0,0,reactive,0,,5,5"
refuse "t.csv:3" $run
row "0,0,0,neither,0,,5,5,0"
refuse "t.csv:3: column class" $run
row "0,0,0,reactive,-1,,5,5,0"
refuse "t.csv:3: column arrival_s" $run
row "0,0,0,reactive,nan,,5,5,0"
refuse "t.csv:3: column arrival_s" $run
row "0,0,0,reactive,1e300,,5,5,0"
refuse "t.csv:3: column arrival_s" $run
row "0,0,0,reactive,0,,0,5,0"
refuse "t.csv:3: column input_tokens" $run
row "0,0,0,reactive,0,,5,99999999999999999999,0"
refuse "t.csv:3: column output_tokens" $run
row "0,0,0,reactive,0,,5,5,6"
refuse "prefix_tokens" $run
row '0,0,0,"reactive,0,,5,5,0'
refuse "t.csv" $run
row "0,0,1,reactive,,3,5,5,0"
refuse "session 0" $run
printf '# xpusim-trace v1\n%s\n0,0,0,reactive,0,,5,5,0\n0,1,0,reactive,0,,5,5,0\n' "$head" >"$dir/t.csv"
refuse "is given twice" $run
printf '{"format":1,' >"$dir/s.json"
refuse "s.json:1" $x run --policy fcfs --soc "$dir/s.json"
printf '{"format":1,\n"name":"x","name":"y"}' >"$dir/s.json"
refuse "twice" $x run --policy fcfs --soc "$dir/s.json"
printf '[]' >"$dir/s.json"
refuse "object" $x run --policy fcfs --soc "$dir/s.json"
sed 's/"unit": "GB\/s"/"unit": "GB"/' hwmodels/soc/core-ultra-5-125h.json >"$dir/s.json"
refuse "unit" $x run --policy fcfs --soc "$dir/s.json"
sed 's/"chunk_rows": 256/"chunk_rows": 256, "surprise": 1/' hwmodels/soc/core-ultra-5-125h.json >"$dir/s.json"
refuse "devices[0].surprise: unknown key" $x run --policy fcfs --soc "$dir/s.json"
refuse "trace" $x trace
refuse "format" $x trace import --format nonesuch "$dir/s.json"
refuse "--workload" $x trace gen
refuse "" $x nonesuch
refuse "" $x run --nonesuch
refuse "" $x compare --policy fcfs --replications 0
refuse "truth_sigma" $x compare --policy fcfs --regret --set sim.truth_sigma=0.1
refuse "hang_frac" $x compare --policy fcfs --regret --set sim.hang_frac=0.1
refuse "horizon_s" $x compare --policy fcfs --regret --set sim.horizon_s=10
printf '# xpusim-trace v1\n%s\n0,0,0,reactive,0,,5,5,0\n0,1,0,reactive,0,,5,5,0\n' "$head" >"$dir/t.csv"
cp "$dir/t.csv" "$dir/$(printf '%0240d' 0).csv" # what is wrong with a row is told under the whole name, too
deep=$dir/$(printf './%.0s' $(seq 300))$(printf '%0240d' 0).csv
refuse "$deep" $x run --policy fcfs --trace "$deep"
XPUSIM_DATA_DIR=$PWD/$(printf './%.0s' $(seq 300)) $x run --policy fcfs --workload w1:n=2 >"$dir/out" || bad=1
printf '{"model_type": "nonesuch"}' >"$dir/c.json"
refuse "\"nonesuch\"" $x new-llm m --hf "$dir/c.json"
printf '# xpusim-trace v1\n%s,cancel_s\n0,0,0,reactive,0,,5,5,0,1\n' "$head" >"$dir/t.csv"
refuse "tune" $x compare --policy fcfs --tune 0
refuse "at least 39 points" $x claims --fit A7,B17 --budget 6
# names that there is no room for are not left out in silence
names() { seq -s, 1 "$2" | sed "s/[0-9]*/$1&/g"; }
refuse "--fit: more than 31 names" $x claims --fit "$(names B 32)"
refuse "--under: more than 31 names" $x claims --fit B6,B7 --under "$(names B 32)"
refuse "--over: more than 24 names" $x claims --fit B6,B7 --over "$(names p 25)"
# nor are a machine's numbers, when there is no room to set them all
soc=core-ultra-7-258v
sets=$({ $x list setting --csv | sed 1d | head -n 15; $x list soc $soc --csv | sed 1d | head -n 173; } | cut -d, -f1,2 | sed 's/^/--set /; s/,/=/')
refuse "--set states 188; together at most 192" $x compare --policy edf --policy srpt --soc $soc --uncertainty 16 $sets
refuse "--set states 188; together at most 192" $x falsify --policy edf --baseline srpt --soc $soc $sets
refuse "nonesuch" $x compare --policy fcfs --tune 2 --tune-metric nonesuch
refuse "tune-replications" $x compare --policy fcfs --tune 2 --tune-replications x
refuse "belong to --tune" $x compare --policy fcfs --tune-metric reactive.e2e_s.mean
refuse "horizon_s" $x compare --policy fcfs --tune 2 --set sim.horizon_s=10
refuse "--policy: given twice" $x run --policy fcfs --policy edf
refuse "--seed: given twice" $x compare --policy fcfs --seed 1 --seed 2
refuse "--load: given twice" $x compare --policy fcfs --load 0.5 --load 0.9
refuse "--json: given twice" $x list metric --json --json
refuse "--b-soc: given twice" $x diff --policy fcfs --b-soc a --b-soc b
printf 'Timestamp,Model,Request tokens,Response tokens,Total tokens,Log Type\n1,m,10,20,30,Conversation log\n' >"$dir/burst.csv"
refuse "begins as the format \"burstgpt\" does. To import it: xpusim trace import" $x run --policy fcfs --trace "$dir/burst.csv"
refuse "begins as the format \"vllm\" does" $x run --policy fcfs --trace tests/samples/vllm-0.32.0.json
printf 'a,b\n1,2\n' >"$dir/ab.csv"
refuse 'is no xpusim trace. `xpusim trace import`' $x run --policy fcfs --trace "$dir/ab.csv"
refuse "input_tokens and output_tokens is read as plain" $x trace import "$dir/ab.csv"
refuse "2 recordings; this command takes one" $x run --policy fcfs --trace a.csv --trace b.csv
refuse "the folder has no .csv file" $x compare --policy fcfs --trace tests/golden
refuse "no file matches" $x compare --policy fcfs --trace "$dir/none-*.csv"
refuse "--resample: takes one recorded trace" $x compare --policy fcfs --resample sessions
refuse "--resample: does not go with" $x compare --policy fcfs --resample sessions --trace "$dir/t.csv" --uncertainty 16
refuse "a recording gives none" $x falsify --policy fcfs --baseline edf --trace "$dir/t.csv"
refuse "a rate is judged on up to 80 traces" $x search --policy fcfs --slo "energy_j<=1" --trace "$dir/t.csv"
refuse "laptop: neither a file ending in .json nor a shipped suite; there are agents-2026.1, laptop-2026.1" $x compare --suite laptop --policy edf --policy fcfs
refuse "neither a file ending in .json nor a shipped suite" $x sweep . -o "$dir/none.db"
refuse "trace file" $x compare --policy fcfs --tune 2 --trace "$dir/t.csv"
refuse "cancel" $x compare --policy fcfs --regret --trace "$dir/t.csv"
refuse "" $x trace gen --workload w1:n=2 -o "$dir/no/such/folder/x.csv"
refuse "" $x run --policy fcfs --requests "$dir/no/such/folder/x.csv"
mkdir "$dir/$(printf '%0200d' 0)" # lengths from a file under a long path
deep=$dir/$(printf '%0200d' 0)/$(printf '%0200d' 1).csv
cp traces/datasets/bfcl.csv "$deep"
$x run --policy fcfs --workload "mixed:reactive=$deep,duration_s=60" >"$dir/out" || bad=1
grep -qF "mixed:reactive=$deep,duration_s=60" "$dir/out" || bad=1
refuse "" $x graphs --p 1,2 --d 1 --s 1 --chunks 2
# A user's text is whole in the message at any length: a name, and a path that no system opens.
whole() { # the command, in which W stands for it
    for w in $name $path; do
        set -- $(echo "$command" | sed "s|\bW\b|$w|g")
        refuse "$w" $x "$@"
    done
}
name=$(printf '%0300d' 0 | tr 0 n)
path=$(printf '%05000d' 0 | tr 0 p)
while read -r command; do
    whole
done <<EOF
W
help W
list W
list policy W
list dataset W
list workload W
run --W 1
run --policy W
run --policy fcfs:W=1
run --policy exec:W
run --policy python:W:X
run --policy ./W.so
run --policy fcfs --soc ./W.json
list soc W
list llm W
validate --points W
claims --profile W
run --policy fcfs --trace W
run --policy fcfs --workload W
run --policy fcfs --workload w1:W=1
run --policy fcfs --workload mixed:reactive=./W
run --policy fcfs --workload w1:n=W
run --policy fcfs --set W=1
run --policy fcfs --set soc.devices.W.x=1
run --policy fcfs --set sim.hwmodel=W
run --policy fcfs --timeline W/x
compare --policy fcfs --metric counters.W
search --policy fcfs --slo W<=20
claims --file W
characterize W
plot W
plot causes W
merge -o $dir/store.db W
explain --policy fcfs --request W
trace import W
gate W
diff --policy fcfs --against W
EOF
printf '{"base": {"policy": "fcfs", "%s": 1}}' "$name" >"$dir/e.json"
refuse "base.$name: no setting is called $name" $x sweep "$dir/e.json" -o "$dir/e.db"
if ls "$dir" | grep -q part; then
    echo "FAILED: something half-written is left"
    bad=1
fi
exit $bad
