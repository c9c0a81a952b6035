#!/bin/sh
# `explain` says how long a request would take under other conditions, and `run` must give that
# then: alone on the machine, and without contention. Its causes sum to the latency of `run`.
set -u
cd "$(dirname "$0")/../.." || exit 2
x=${BUILD:-build}/xpusim
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
bad=0
fail() { echo "FAILED: $*"; bad=1; }

w="mixed:reactive_per_min=6,proactive_per_min=12,duration_s=120"
column() { awk -F, -v id="$2" -v name="$3" '/^#/ {next} !head++ {for (i = 1; i <= NF; i++) if ($i == name) c = i} $1 == id {print $c}' "$1"; }
e2e() { column "$1" "$2" e2e_s; }
key() { sed -n "s/.*\"$1\":[[:space:]]*\([0-9.e+-]*\).*/\1/p" "$dir/e.json"; }
equal() { awk -v a="$1" -v b="$2" 'BEGIN {exit !(a != "" && b != "" && a - b < 1.1e-9 && b - a < 1.1e-9)}'; }

"$x" trace gen --workload "$w" --seed 3 >"$dir/t.csv"
for policy in agent-xpu-v2 openvino-cb; do
    "$x" run --policy $policy --trace "$dir/t.csv" --requests "$dir/all.csv" --quiet >/dev/null
    "$x" run --policy $policy --trace "$dir/t.csv" --set sim.contention=none --requests "$dir/free.csv" --quiet >/dev/null
    for id in 3 9 20; do
        "$x" explain --request $id --policy $policy --trace "$dir/t.csv" --json >"$dir/e.json" || fail "explain $id"
        awk -F, -v id=$id '/^#/ || !head++ || $1 == id' "$dir/t.csv" >"$dir/one.csv"
        "$x" run --policy $policy --trace "$dir/one.csv" --requests "$dir/alone.csv" --quiet >/dev/null
        equal "$(key alone_s)" "$(e2e "$dir/alone.csv" $id)" || fail "$policy $id alone: $(key alone_s)"
        equal "$(key uncontended_s)" "$(e2e "$dir/free.csv" $id)" || fail "$policy $id uncontended: $(key uncontended_s)"
        awk -v b="$(key bound_s)" -v a="$(key alone_s)" 'BEGIN {exit !(b > 0 && b <= a)}' || fail "$policy $id: bound $(key bound_s)"
        sum=$(sed -n '/causes_ns/,/}/p' "$dir/e.json" | awk -F'[:,]' '/":/ && !/causes/ {s += $2} END {printf "%.0f", s}')
        [ "$sum" = "$(key latency_ns)" ] || fail "$policy $id: causes sum to $sum, latency $(key latency_ns)"
        # up to the first token: causes sum to the TTFT of the run
        "$x" explain --request $id --policy $policy --trace "$dir/t.csv" --until first-token --json >"$dir/first.json" || fail "first $id"
        first=$(sed -n '/causes_ns/,/}/p' "$dir/first.json" | awk -F'[:,]' '/":/ && !/causes/ {s += $2} END {printf "%.9f", s / 1e9}')
        equal "$first" "$(column "$dir/all.csv" $id ttft_s)" || fail "$policy $id: causes sum to $first until the first token"
        # for people the longest cause comes first
        "$x" explain --request $id --policy $policy --trace "$dir/t.csv" | awk '$3 == "s" && $5 == "%" {print $2}' >"$dir/times"
        sort -rn "$dir/times" | cmp -s - "$dir/times" && [ -s "$dir/times" ] || fail "$policy $id: causes are not sorted"
        equal "$(awk -v n="$sum" 'BEGIN {printf "%.9f", n / 1e9}')" "$(e2e "$dir/all.csv" $id)" || fail "$policy $id: latency"
    done
done
# Alone only the host, and the part of launches that roofline leaves out, keep fcfs from the bound.
# The bound is of the last token, which has most of the time, not of the first.
"$x" explain --request 0 --policy fcfs --workload w1:n=1 --json >"$dir/e.json" || fail "a lone request"
awk -v b="$(key bound_s)" -v a="$(key alone_s)" 'BEGIN {exit !(b > 0.8 * a && b <= a)}' || fail "lone bound $(key bound_s) of $(key alone_s)"
"$x" explain --policy fcfs >"$dir/out" 2>&1
[ $? -eq 2 ] && grep -q -- --interference "$dir/out" || fail "neither --request nor --interference"
"$x" explain --policy fcfs --request 1 --interference >/dev/null 2>&1
[ $? -eq 2 ] || fail "both --request and --interference"
"$x" explain --policy fcfs --request 1 --job 1 >/dev/null 2>&1
[ $? -eq 2 ] || fail "both --request and --job"
"$x" explain --policy fcfs --job 1 --until first-token --workload coding-agent >/dev/null 2>"$dir/out"
[ $? -eq 2 ] && grep -q first-token "$dir/out" || fail "a job until its first token"
"$x" explain --policy fcfs --job 99999 --workload coding-agent >"$dir/said" 2>"$dir/out"
[ $? -eq 2 ] && grep -q 'job 99999' "$dir/out" && [ ! -s "$dir/said" ] || fail "a job of nobody"
# The only job of a run takes what job_s says, and its causes and gaps sum to it.
cat >"$dir/one.json" <<'JSON'
{"clients": [{"name": "a", "turns": 4, "prompt_tokens": 500, "growth_tokens": 300, "answer_tokens": 60, "gap_s": 2,
  "subagents": [{"name": "s", "count": 2, "on_turns": [1, 3], "turns": 2, "prompt_tokens": 400, "growth_tokens": 200, "answer_tokens": 50, "gap_s": 1}]}]}
JSON
for policy in agent-xpu-v2 openvino-cb; do
    "$x" run --policy $policy --workload "$dir/one.json" --json -q >"$dir/r.json"
    "$x" explain --job 2 --policy $policy --workload "$dir/one.json" --json >"$dir/j.json" || fail "job under $policy"
    python3 - "$dir/r.json" "$dir/j.json" <<'PY' || fail "$policy: a job's sums"
import json, sys
run, job = (json.load(open(f)) for f in sys.argv[1:])
assert run["metrics"]["all.job_s.n"] == 1 and job["complete"]
assert abs(run["metrics"]["all.job_s.mean"] - job["latency_ns"] / 1e9) < 1e-9
assert sum(job["causes_ns"].values()) + sum(job["gaps_ns"].values()) == job["latency_ns"]
assert abs(job["otherwise"]["alone_s"] * 1e9 - job["latency_ns"]) < 1
on = [r for r in job["requests"] if r["on_path"]]
assert len(on) >= 4 and max(r["end_ns"] for r in on) - job["first_ns"] == job["latency_ns"]
assert sum(e["on_path"] for e in job["edges"]) == len(on) - 1
assert any(b["of_job"] for b in job["blockers"])
PY
done
# A prompt of 512 tokens has the iGPU for more than a second. The request behind it is cancelled
# after half a second, and has waited for it all the time. The NPU, the first device, is idle, but
# no request uses it.
printf '%s\n' '# xpusim-trace v1' request_id,session_id,turn,class,arrival_s,gap_s,input_tokens,output_tokens,prefix_tokens,cancel_s \
    0,0,0,reactive,0,,512,1,0, 1,1,0,proactive,0,,600,50,0,0.5 >"$dir/cancelled.csv"
"$x" explain --request 1 --policy edf --trace "$dir/cancelled.csv" --json -q >"$dir/r.json"
python3 - "$dir/r.json" <<'PY' || fail "who waited until it was cancelled: $(cat "$dir/r.json")"
import json, sys
d = json.load(open(sys.argv[1]))
assert {k: v for k, v in d["causes_ns"].items() if v} == {"queue_other": 500000000}, d["causes_ns"]
assert [(b["request_id"], b["queue_ns"]) for b in d["blockers"]] == [(0, 500000000)], d["blockers"]
PY
# It has no latency of which another time would be a percentage.
"$x" explain --request 1 --policy edf --trace "$dir/cancelled.csv" -q | sed -n '/^otherwise/,/^$/p' >"$dir/r.txt"
grep -q "^  alone, no policy below  .* s  to its end, which it did not reach$" "$dir/r.txt" && ! grep -q % "$dir/r.txt" || fail "a share of no latency: $(cat "$dir/r.txt")"
exit $bad
