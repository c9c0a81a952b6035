#!/bin/sh
# xpusim drive prints one plain sentence without engines. With ggml it runs, calibrates and compares
# on the cpu clock, where no time decides anything: only tokens, counts and files do.
set -eu
BUILD=${BUILD:-build}
x=$BUILD/xpusim
tmp=$(mktemp -d)
trap 'rm -rf "$tmp"' EXIT
fail() { echo "drive: $*"; exit 1; }

{
    echo '# xpusim-trace v1'
    echo 'request_id,session_id,turn,class,arrival_s,gap_s,input_tokens,output_tokens,prefix_tokens'
    for i in 0 1 2 3 4 5 6 7 8 9 10 11; do
        class=proactive
        [ $((i % 3)) -eq 0 ] && class=reactive
        echo "$i,$i,0,$class,0.00$((i % 10)),,$((20 + i * 17)),$((4 + i)),0"
    done
} | sort -t, -k5,5 -s >"$tmp/rows"
# ids follow arrival
awk -F, -v OFS=, '/^#/ || /^request/ { next } { $1 = $2 = n++; print }' "$tmp/rows" >"$tmp/body"
{ echo '# xpusim-trace v1'; grep '^request' "$tmp/rows"; cat "$tmp/body"; } >"$tmp/t.csv"

# A model of one small layer runs, because tokens, counts and files are compared here, and no times.
sed 's/"random-256"/"small"/; s/"layers": 2/"layers": 1/; s/"hidden": 256/"hidden": 64/; s/"heads": 4/"heads": 1/; s/"kv_heads": 2/"kv_heads": 1/
    s/"ffn_hidden": 704/"ffn_hidden": 128/; s/"vocab": 1000/"vocab": 128/' hwmodels/llm/random-256.json >"$tmp/small.json"
[ "$(diff hwmodels/llm/random-256.json "$tmp/small.json" | grep -c '^>')" -eq 7 ] || fail "the small model: $(cat "$tmp/small.json")"

# 1. No engine, no such engine, no policy: exit 2 and one sentence.
status=0
XPUSIM_ENGINES=$tmp $x drive --policy fcfs --trace "$tmp/t.csv" >"$tmp/out" 2>"$tmp/err" || status=$?
[ $status -eq 2 ] || fail "no engine: exit $status"
grep -q 'engine ggml is not there: `make engines` fetches and builds it' "$tmp/err" || fail "no engine: $(cat "$tmp/err")"
[ ! -s "$tmp/out" ] || fail "no engine, but output"
status=0
$x drive --trace "$tmp/t.csv" >/dev/null 2>"$tmp/err" || status=$?
[ $status -eq 2 ] && grep -q 'one --policy is needed' "$tmp/err" || fail "no policy: $(cat "$tmp/err")"

if [ ! -e "$BUILD/engines/ggml.so" ]; then
    echo "skipped: engine ggml is not there (make engines)"
    exit 0
fi
# Options of one run are refused with several, and -o without --calibrate.
refuses() { # text, options...
    text=$1
    shift
    status=0
    $x drive --clock cpu --llm random-256 --trace "$tmp/t.csv" "$@" >/dev/null 2>"$tmp/err" || status=$?
    [ $status -eq 2 ] && grep -q -e "$text" "$tmp/err" || fail "$*: exit $status, $(cat "$tmp/err")"
}
for option in tokens topk kernels requests decisions timeline; do
    refuses 'are of a single run of one policy' --policy fcfs --repeat 2 --$option "$tmp/none"
    refuses 'are of a single run of one policy' --compare --policy fcfs --policy edf --$option "$tmp/none"
    refuses 'are of a single run of one policy' --calibrate "$tmp/t.csv" -o "$tmp/none" --$option "$tmp/none"
done
refuses 'are of a single run of one policy' --compare --policy fcfs --policy edf --explain
refuses 'print text only' --policy fcfs --repeat 2 --json
refuses 'print text only' --calibrate "$tmp/t.csv" -o "$tmp/none" --json
refuses '-o is the SoC file of --calibrate' --policy fcfs -o "$tmp/none"
[ ! -e "$tmp/none" ] || fail "a refused option made its file"
# Where one output cannot be written, what was there of the others stays.
echo kept >"$tmp/kept"
refuses 'no/such.csv: cannot write' --policy fcfs --decisions "$tmp/kept" --requests "$tmp/no/such.csv"
[ "$(cat "$tmp/kept")" = kept ] || fail "a run that did not begin left $(wc -c <"$tmp/kept") bytes"
# Machine and model by default are such as this computer can be.
$x drive --policy fcfs --clock cpu --workload w1:n=1 --json -q >"$tmp/out"
grep -q '"name":.*"two-cores"' "$tmp/out" && grep -q '"name":.*"random-1024"' "$tmp/out" || fail "defaults: $(grep '"name"' "$tmp/out")"
# Turn 1 of session 0 never arrives, because request 1 has ended by then. Turn 2 does, while session 1 waits for its next turn.
cat >"$tmp/never.csv" <<'EOF'
# xpusim-trace v2
request_id,session_id,turn,class,arrival_s,gap_s,input_tokens,output_tokens,prefix_tokens,ends_with
0,0,0,reactive,0,,20,4,0,
1,1,0,reactive,0,,30,3,0,
2,0,1,reactive,,5,30,3,20,1
3,0,2,reactive,,0,60,3,24,
4,1,1,reactive,,9,40,3,33,
EOF
$x drive --policy fcfs --clock cpu --llm "$tmp/small.json" --trace "$tmp/never.csv" --requests "$tmp/never" -q >/dev/null 2>"$tmp/err" ||
    fail "a turn that never arrives: $(cat "$tmp/err")"
[ "$(grep -v '^#' "$tmp/never" | grep ',finished,' | cut -d, -f1 | tr '\n' ' ')" = '0 1 3 4 ' ] || fail "a turn that never arrives: $(cat "$tmp/never")"
# A device that is missing has its whole name in the message, at any length.
for name in "$(printf '%0300d' 0 | tr 0 n)" "$(printf '%05000d' 0 | tr 0 p)"; do
    status=0
    $x drive --policy fcfs --devices "$name" >/dev/null 2>"$tmp/err" || status=$?
    [ $status -eq 2 ] && grep -qF "$name" "$tmp/err" || fail "long name: exit $status"
done
# A real run says how much the package drew, or in one sentence why that is unknown.
XPUSIM_RAPL_DIR=$tmp/none $x drive --policy fcfs --clock cpu --llm random-256 --trace "$tmp/t.csv" >"$tmp/out"
grep -q "no energy was measured: no package counter (RAPL) can be read in $tmp/none" "$tmp/out" || fail "energy: $(cat "$tmp/out")"
mkdir -p "$tmp/rapl/intel-rapl:0"
echo package-0 >"$tmp/rapl/intel-rapl:0/name"
echo 5000000 >"$tmp/rapl/intel-rapl:0/energy_uj"
echo 262143328850 >"$tmp/rapl/intel-rapl:0/max_energy_range_uj"
XPUSIM_RAPL_DIR=$tmp/rapl $x drive --policy fcfs --clock cpu --llm random-256 --trace "$tmp/t.csv" --json >"$tmp/out"
grep -q '"package_j":.*0' "$tmp/out" || fail "package_j: $(cat "$tmp/out")"

# The machine and the model of simulations run where they are named.
$x drive --policy fcfs --clock cpu --soc core-ultra-5-125h --llm llama-3.2-3b --trace "$tmp/t.csv" --set llm.layers=1 --set llm.hidden=64 \
    --set llm.heads=1 --set llm.kv_heads=1 --set llm.head_dim=64 --set llm.ffn_hidden=128 --set llm.vocab=128 >"$tmp/out" 2>"$tmp/err" ||
    fail "named machine: $(cat "$tmp/err")"
grep -q '^fcfs on core-ultra-5-125h, llama-3.2-3b$' "$tmp/out" || fail "named machine: $(sed -n 1p "$tmp/out")"

usual="--clock cpu --llm $tmp/small.json --trace $tmp/t.csv"

# 2. Two policies, one machine of two devices: the same tokens, clean books, and no energy.
for p in fcfs agent-xpu-v2; do
    # shellcheck disable=SC2086
    $x drive --policy $p $usual --tokens "$tmp/$p.tokens" --kernels "$tmp/$p.csv" --json >"$tmp/$p.json"
    grep -q '"clean":.*true' "$tmp/$p.json" || fail "$p: books"
    grep -q '"engines":.*"npu = ggml 0' "$tmp/$p.json" || fail "$p: does not say what ran"
    ! grep -q 'energy_j_per_token' "$tmp/$p.json" || fail "$p: energy that nobody measured"
    [ "$(wc -l <"$tmp/$p.csv")" -gt 100 ] || fail "$p: kernels"
done
cmp -s "$tmp/fcfs.tokens" "$tmp/agent-xpu-v2.tokens" || fail "other tokens under another policy"
[ "$(wc -w <"$tmp/fcfs.tokens")" -eq $((12 + 12 * 4 + 66)) ] || fail "tokens: $(wc -w <"$tmp/fcfs.tokens")"

# The likeliest tokens of each request: those that were taken come first, and a calibrated drafter reads the file.
# shellcheck disable=SC2086
$x drive --policy fcfs $usual --topk "$tmp/topk.jsonl" >/dev/null
python3 - "$tmp/topk.jsonl" "$tmp/fcfs.tokens" <<'EOF' || fail "topk"
import json, sys
taken = {int(w[0]): [int(t) for t in w[1:]] for w in map(str.split, open(sys.argv[2]))}
lines = [json.loads(line) for line in open(sys.argv[1])]
assert len(lines) == 12 and sorted(o["request"] for o in lines) == sorted(taken)
for o in lines:
    n, next_ = len(o["context"]), o["next"]
    assert o["output"] == taken[o["request"]] and len(next_) == n + len(o["output"]) - 1
    assert [e[0][0] for e in next_[n - 1:]] == o["output"]
    for e in next_:
        p = [x[1] for x in e]
        assert len(e) == 8 and p == sorted(p, reverse=True) and 8 / 128 < sum(p) < 1
EOF
$x run --soc snapdragon-8gen2 --llm qwen2.5-1.5b --workload "texts:file=$tmp/topk.jsonl,gap_s=5" \
    --policy sd-npu:drafter=calibrated -q >/dev/null || fail "topk: not read"

# Options that show a simulation show a real run, too: decisions, timeline, causes of latencies.
# shellcheck disable=SC2086
$x drive --policy fcfs $usual --decisions "$tmp/decisions" --timeline "$tmp/timeline.json" >/dev/null
[ "$(grep -c ' launch .* = 0$' "$tmp/decisions")" -ge $((12 + 66)) ] || fail "decisions: $(head -3 "$tmp/decisions")"
[ "$(grep -o '"name":"[^"]*prefill' "$tmp/timeline.json" | wc -l)" -ge 12 ] || fail "timeline"
# shellcheck disable=SC2086
$x drive --policy fcfs $usual --explain >"$tmp/why"
grep -q 'compute .*kernels for its own tokens' "$tmp/why" || fail "explain: $(cat "$tmp/why")"

# 3. Options that are not real are refused by name, exit 1.
status=0
for f in decisions timeline requests kernels tokens topk; do echo old >"$tmp/old.$f"; done
# shellcheck disable=SC2086
$x drive --policy sd-npu:blocks=2 $usual --decisions "$tmp/old.decisions" --timeline "$tmp/old.timeline" --requests "$tmp/old.requests" \
    --kernels "$tmp/old.kernels" --tokens "$tmp/old.tokens" --topk "$tmp/old.topk" >/dev/null 2>"$tmp/err" || status=$?
[ $status -eq 1 ] && grep -q 'needs graph loads' "$tmp/err" || fail "sd-npu: $(cat "$tmp/err")"
[ "$(cat "$tmp"/old.* | sort -u)" = old ] || fail "a run that could not start changed $(grep -Lx old "$tmp"/old.*)"
# Tokens of a run that fails in its middle are not half of a file: 20 + 4 tokens fit, and 207 + 15 do not.
status=0
# shellcheck disable=SC2086
$x drive --policy fcfs $usual --set sim.kv_capacity_tokens=64 --tokens "$tmp/old.tokens" --topk "$tmp/old.topk" >/dev/null 2>"$tmp/err" || status=$?
[ $status -eq 1 ] && grep -q 'KV tokens, the machine holds 64' "$tmp/err" || fail "short memory: exit $status, $(cat "$tmp/err")"
[ "$(cat "$tmp"/old.* | sort -u)" = old ] || fail "a run that failed left $(grep -Lx old "$tmp"/old.*)"

# On the wall clock: a processor that is not there; a kernel of 4,096 rows (72 GFLOP) that takes far longer than 10 ms.
drive_wall() { # exit status, text, options...
    wanted=$1 text=$2
    shift 2
    status=0
    $x drive --policy fcfs --clock wall --json "$@" >"$tmp/out" 2>"$tmp/err" || status=$?
    [ $status -eq "$wanted" ] && cat "$tmp/out" "$tmp/err" | grep -q -- "$text" || fail "$*: $(cat "$tmp/out" "$tmp/err")"
}
{ head -n 2 "$tmp/t.csv"; echo '0,0,0,reactive,0,,64,2,0'; } >"$tmp/one.csv"
{ head -n 2 "$tmp/t.csv"; echo '0,0,0,reactive,0,,4096,2,0'; } >"$tmp/longer.csv"
drive_wall 2 'there are processors 0 to' --cores 9999 --llm random-256 --trace "$tmp/one.csv"
drive_wall 0 '"clean":.*true' --cores 0 --llm random-256 --trace "$tmp/one.csv"
grep -q '"realtime":.*false' "$tmp/out" || fail "realtime that nobody asked for: $(cat "$tmp/out")"
drive_wall 1 'its work does not come back' --hang 0.01 --llm random-1024 --trace "$tmp/longer.csv"
drive_wall 0 '"realtime":.*true\|real-time priority was not permitted' --realtime --llm random-256 --trace "$tmp/one.csv"
[ ! -e "$BUILD/engines/openvino.so" ] || grep -q __asan_init "$x" ||
    for _ in 1 2 3 4 5; do # the thread goes on while the process ends
        drive_wall 1 'opening it does not come back' --engine openvino --compile-limit 0.01 --llm random-1024 --trace "$tmp/one.csv"
    done

# 4. Calibration writes a machine that simulates; the comparison of two policies is whole.
# shellcheck disable=SC2086
$x drive --calibrate "$tmp/t.csv" --clock cpu --llm "$tmp/small.json" -o "$tmp/my.json" >"$tmp/fit" 2>"$tmp/fit.err"
grep -q 'mha decode' "$tmp/fit" || fail "fit: $(cat "$tmp/fit")"
grep -q '^bench on npu: ' "$tmp/fit.err" || fail "calibration without a bench: $(cat "$tmp/fit.err")"
# shellcheck disable=SC2086
$x drive --calibrate "$tmp/t.csv" --trace-only --clock cpu --llm "$tmp/small.json" -o "$tmp/only.json" >/dev/null 2>"$tmp/err" || :
! grep -q '^bench' "$tmp/err" && grep -q ' kernels in ' "$tmp/err" || fail "--trace-only: $(cat "$tmp/err")"
grep -q 'not measured: contention' "$tmp/fit" || fail "fit does not say what the clock hides: $(cat "$tmp/fit")"
! grep -q '"beside"' "$tmp/my.json" || fail "contention of kernels that ran one after another"
# On the wall clock devices run at once, so pairs of kernels say what the memory gives to both.
XPUSIM_PAIR_WINDOW_S=0.001 $x drive --calibrate "$tmp/t.csv" --llm "$tmp/small.json" --policy fcfs -o "$tmp/wall.json" >"$tmp/out" 2>"$tmp/err" || fail "wall: $(cat "$tmp/err")"
grep -Eq '^ddr.together: |both devices are on one processor' "$tmp/out" || fail "no pairs: $(cat "$tmp/out" "$tmp/err")"
$x run --soc "$tmp/wall.json" --llm "$tmp/small.json" --policy fcfs --trace "$tmp/t.csv" >"$tmp/out" 2>&1 || fail "wall.json: $(cat "$tmp/out")"
# The file runs as it was calibrated; another kernel-time model, or another LLM, is one sentence.
mine="run --soc $tmp/my.json --policy fcfs --trace $tmp/t.csv"
# shellcheck disable=SC2086
{
    $x $mine --llm "$tmp/small.json" >"$tmp/itself" 2>"$tmp/err" || fail "the calibrated machine does not run"
    $x $mine --llm "$tmp/small.json" --set sim.hwmodel=per-op >"$tmp/per-op" 2>&1
    [ ! -s "$tmp/err" ] || fail "warning for the calibrated machine as it is: $(cat "$tmp/err")"
    [ "$(grep 'E2E s' "$tmp/itself")" = "$(grep 'E2E s' "$tmp/per-op")" ] || fail "the calibrated kernels are not used"
    $x $mine --llm "$tmp/small.json" --set sim.hwmodel=extended >"$tmp/extended" 2>"$tmp/err"
    [ "$(grep -c 'were fitted with sim.hwmodel=per-op; this run uses extended' "$tmp/err")" -eq 1 ] || fail "other model: $(cat "$tmp/err")"
    $x $mine --llm random-1024 --json >"$tmp/other.json" 2>"$tmp/err"
    [ "$(grep -c 'has measured kernels of small, none of random-1024' "$tmp/err")" -eq 1 ] || fail "other LLM: $(cat "$tmp/err")"
    grep -q 'none of random-1024' "$tmp/other.json" || fail "other LLM, JSON"
}
# shellcheck disable=SC2086
$x drive --compare --policy fcfs --policy pd-static $usual --soc "$tmp/my.json" --beside-soc two-cores --repeat 2 --json \
    >"$tmp/c.json" 2>"$tmp/err"
! grep -q 'this run uses p-norm' "$tmp/err" || fail "a warning of the comparison's own choice: $(cat "$tmp/err")"
# One that calibrates before each turn says of which trace it is.
# shellcheck disable=SC2086
$x drive --compare --calibrate "$tmp/t.csv" --trace-only -o "$tmp/turn.json" --policy fcfs --policy edf $usual >"$tmp/turn" 2>/dev/null
grep -q "^$tmp/t.csv, clock cpu, 1 repeat;" "$tmp/turn" || fail "comparison that calibrates: $(head -1 "$tmp/turn")"
PYTHONDONTWRITEBYTECODE=1 python3 tests/helpers/driven_check.py "$tmp/c.json" || fail "comparison: other numbers than its requests have"
grep -q '"real_mape"' "$tmp/c.json" && grep -q '"soc":.*"two-cores"' "$tmp/c.json" || fail "comparison"

# 5. At a signal the finished part is written and called a part, and the exit status is the
# signal's. The second request comes after an hour. The loader's thread is the last of five to
# begin, when all devices are open.
{
    sed -n 1,2p "$tmp/t.csv"
    echo '0,0,0,reactive,0.001,,20,4,0'
    echo '1,1,0,reactive,3600,,20,4,0'
} >"$tmp/slow.csv"
interrupted() { # exit status, signal, options...
    want=$1
    signal=$2
    shift 2
    $x drive --llm "$tmp/small.json" --limit 5000 "$@" >"$tmp/out" 2>"$tmp/err" &
    pid=$!
    for _ in $(seq 6000); do
        [ "$(ls /proc/$pid/task 2>/dev/null | wc -l)" -lt 5 ] || break
        sleep 0.1
    done
    sleep 1
    kill -"$signal" $pid
    status=0
    wait $pid || status=$?
    [ $status -eq "$want" ] && grep -q '^xpusim: interrupted: the results are of ' "$tmp/err" ||
        fail "interrupted: exit $status: $*: $(cat "$tmp/err")"
}
interrupted 130 INT --policy fcfs --trace "$tmp/slow.csv" --json --tokens "$tmp/part.tokens" --decisions "$tmp/part.decisions"
grep -q '"interrupted":[[:space:]]*true' "$tmp/out" && [ "$(tail -c 2 "$tmp/out")" = "}" ] || fail "interrupted: $(cat "$tmp/out")"
[ -s "$tmp/part.tokens" ] && [ -s "$tmp/part.decisions" ] || fail "interrupted: files"
interrupted 143 TERM --policy fcfs --trace "$tmp/slow.csv"
grep -q 'of 1 request finished' "$tmp/out" || fail "interrupted: $(cat "$tmp/out")"
# Nothing whole ran: no comparison, no machine.
interrupted 130 INT --compare --policy fcfs --policy edf --trace "$tmp/slow.csv"
interrupted 130 INT --calibrate "$tmp/slow.csv" -o "$tmp/none.json"
[ ! -e "$tmp/none.json" ] || fail "a machine of nothing"
grep -q 'of 0 runs' "$tmp/err" || fail "interrupted: $(cat "$tmp/err")"

# A session whose next turn never comes gives its KV back. There are 600 of them, one after another,
# and a real run keeps KV for 512.
{
    echo '# xpusim-trace v1'
    echo 'request_id,session_id,turn,class,arrival_s,gap_s,input_tokens,output_tokens,prefix_tokens,until_s'
    for i in $(seq 0 599); do echo "$i,$i,0,proactive,$((i / 100)).$(printf %02d $((i % 100))),,2,1,0,"; done
    for i in $(seq 0 599); do echo "$((600 + i)),$i,1,proactive,,100,4,1,2,50"; done
} >"$tmp/late.csv"
$x drive --policy fcfs --clock cpu --llm "$tmp/small.json" --trace "$tmp/late.csv" >"$tmp/out" 2>&1 || fail "late turns: $(cat "$tmp/out")"

# 6. A clock that steps back by a minute.
${CC:-gcc} -O1 -shared -fPIC -o "$tmp/back.so" tests/golden/clock_back.c
head -n 4 "$tmp/t.csv" >"$tmp/short.csv"
env ASAN_OPTIONS="${ASAN_OPTIONS:+$ASAN_OPTIONS:}verify_asan_link_order=0" LD_PRELOAD="$tmp/back.so" \
    $x drive --policy fcfs --llm "$tmp/small.json" --trace "$tmp/short.csv" >"$tmp/out" 2>&1 || fail "clock back: $(cat "$tmp/out")"
echo "drive: fine"
