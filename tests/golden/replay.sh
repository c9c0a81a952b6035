#!/bin/sh
# A decision log replays to the same decisions and the same requests, for every policy, and an
# altered one is noticed.
set -eu
cd "$(dirname "$0")/../.."
x=${BUILD:-build}/xpusim
. tests/helpers/policies.sh
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
workload="--workload mixed:reactive_per_min=6,proactive_per_min=12,duration_s=120 --seed 4"
for p in $(policies); do
    load="$(machine_of "$p") $workload"
    # shellcheck disable=SC2086
    "$x" run --policy "$p" $load --decisions "$dir/a.log" --requests "$dir/a.csv" >/dev/null
    # shellcheck disable=SC2086
    "$x" run --replay "$dir/a.log" $load --decisions "$dir/b.log" --requests "$dir/b.csv" >/dev/null
    cmp "$dir/a.log" "$dir/b.log"
    sed -i '/^#/d' "$dir/a.csv" "$dir/b.csv" # one says replay
    cmp "$dir/a.csv" "$dir/b.csv"
done
sed '20d' "$dir/a.log" >"$dir/c.log"
# shellcheck disable=SC2086
if "$x" run --replay "$dir/c.log" $load >/dev/null 2>&1; then
    echo "a log with a line missing replayed without complaint"
    exit 1
fi
# The rest of a log when the run ends did not happen again: all of it except the instants before the
# horizon.
"$x" run --policy fcfs --workload w1:n=4 --decisions "$dir/all.log" >/dev/null
"$x" run --policy fcfs --workload w1:n=4 --set sim.horizon_s=1 --decisions "$dir/part.log" >/dev/null
left=$(($(wc -l <"$dir/all.log") - $(wc -l <"$dir/part.log")))
"$x" run --replay "$dir/all.log" --workload w1:n=4 --set sim.horizon_s=1 >/dev/null 2>"$dir/err" && { echo "a log that was cut short replayed"; exit 1; }
grep -q "error: $left decisions of $dir/all.log did not happen again" "$dir/err" || { cat "$dir/err"; exit 1; }
grep -q "note: --replay $dir/all.log: workload, seed, machine, models and settings must be those" "$dir/err" || { cat "$dir/err"; exit 1; }
# A log whose end is lost leaves requests without service.
head -n 3 "$dir/all.log" >"$dir/cut.log"
"$x" run --replay "$dir/cut.log" --workload w1:n=4 --trouble '' >/dev/null 2>"$dir/err" && { echo "a log without its end replayed"; exit 1; }
grep -q "stalled: .*; the policy says: the log has ended, with 2 decisions$" "$dir/err" || { cat "$dir/err"; exit 1; }
rc=0
"$x" run --replay "$dir/all.log" --policy edf --workload w1:n=4 >/dev/null 2>"$dir/err" || rc=$?
{ [ "$rc" -eq 2 ] && grep -q "error: --replay does not go with --policy" "$dir/err"; } || { echo "a log and a policy: exit $rc"; cat "$dir/err"; exit 1; }
# Blocks of a graph need not weigh a whole number of bytes.
{
    echo "# xpusim-trace v1"
    echo "request_id,session_id,turn,class,arrival_s,gap_s,input_tokens,output_tokens,prefix_tokens"
    echo "0,0,0,proactive,0,,100,4,0"
} >"$dir/one.csv"
load="--soc rk3588 --llm llama-3.2-3b --trace $dir/one.csv"
# shellcheck disable=SC2086
"$x" run --policy sd-npu:strategy=progressive,speculate=false $load --decisions "$dir/a.log" \
    >/dev/null
grep -q 'bytes=[0-9]*\.[0-9]' "$dir/a.log"
# shellcheck disable=SC2086
"$x" run --replay "$dir/a.log" $load --decisions "$dir/b.log" >"$dir/out"
cmp "$dir/a.log" "$dir/b.log"
# The fingerprint of a replay names the log in place of parameters.
grep -Eq 'policy=sd-npu:replay=[0-9a-f]{16} ' "$dir/out"
# A replay has the drafter that the policy named: also one on a device, one on token texts, and none
# where the run has one.
for d in "eagle $load" "suffix --soc rk3588 --workload texts:n=1" "none $load --set sim.speculation.method=sam"; do
    load=${d#* }
    # shellcheck disable=SC2086
    "$x" run --policy "sd-npu:drafter=${d%% *}" $load --decisions "$dir/a.log" --requests "$dir/a.csv" >/dev/null
    [ "${d%% *}" != eagle ] || grep -q ' occupy device=' "$dir/a.log"
    # shellcheck disable=SC2086
    "$x" run --replay "$dir/a.log" $load --decisions "$dir/b.log" --requests "$dir/b.csv" >/dev/null
    cmp "$dir/a.log" "$dir/b.log"
    sed -i '/^#/d' "$dir/a.csv" "$dir/b.csv"
    cmp "$dir/a.csv" "$dir/b.csv"
done
# A batch has more sequences than a table of the reader's once had.
{
    echo "# xpusim-trace v1"
    echo "request_id,session_id,turn,class,arrival_s,gap_s,input_tokens,output_tokens,prefix_tokens"
    seq 0 4199 | sed 's/.*/&,&,0,proactive,0,,1,2,0/'
} >"$dir/wide.csv"
load="--trace $dir/wide.csv --set soc.memory.capacity.value=64 --set sim.kv_capacity_tokens=100000"
# shellcheck disable=SC2086
"$x" run --policy orca:max_num_seqs=10000,reserve=false $load --decisions "$dir/a.log" >/dev/null
awk 'NF > most { most = NF } END { exit most < 4200 }' "$dir/a.log"
# shellcheck disable=SC2086
"$x" run --replay "$dir/a.log" $load --decisions "$dir/b.log" >/dev/null
cmp "$dir/a.log" "$dir/b.log"
echo "all policies replay"
