#!/bin/sh
# Sweeps give the same bytes from one worker and two, after kill -9, from merged shards, and from a
# repeat that runs nothing. A policy that crashes costs its own runs. Bad experiment files are
# refused.
set -u
cd "$(dirname "$0")/../.." || exit 2
x=$(cd "${BUILD:-build}" && pwd)/xpusim
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
bad=0

fail() {
    echo "FAILED: $*"
    bad=1
}
refuse() { # text the message must hold, experiment as JSON
    printf '%s' "$2" >"$dir/bad.json"
    "$x" sweep "$dir/bad.json" -o "$dir/bad.db" >"$dir/out" 2>"$dir/err"
    status=$?
    if [ $status -ne 2 ] || ! grep -qF -- "$1" "$dir/err"; then
        fail "(exit $status, wanted 2 and \"$1\"): $2"
        cat "$dir/err"
    fi
    test ! -e "$dir/bad.db" || fail "$2: a store was made"
}
says() { # text, command...: exit 0 and the text on stderr
    want=$1
    shift
    if ! "$@" >"$dir/out" 2>"$dir/err" || ! grep -qF -- "$want" "$dir/err"; then
        fail "(exit $?, wanted \"$want\"): $*"
        cat "$dir/err"
    fi
}

# 4 policies x 3 rates x 5 replications = 60 runs
cat >"$dir/s.json" <<'END'
{"name": "small", "base": {"workload": "mixed:reactive_per_min=6,proactive_per_min=12,duration_s=60"},
 "axes": {"policy": ["fcfs", "openvino-cb", "agent-xpu-v2", "fcfs:device=cpu"], "rate": {"from": 0.5, "to": 1.5, "step": 0.5}},
 "replications": 5, "metrics": ["reactive.*", "energy_j", "all.finished"]}
END
spec=$dir/s.json

# Scripts for Slurm are written, and again into the folder that is there. Each task has its shard,
# and the merge has all.
for again in 0 1; do
    says "array.sh and merge.sh written" "$x" sweep "$spec" -o "$dir/far.db" --slurm 3 --slurm-scripts
    rm -f "$dir/far.db.slurm/merge.sh"
done
says "array.sh and merge.sh written" "$x" sweep "$spec" -o "$dir/far.db" --slurm 3 --slurm-scripts
grep -q -- '--array=0-2' "$dir/far.db.slurm/array.sh" || fail "tasks: $(cat "$dir/far.db.slurm/array.sh")"
[ "$(grep -c 'shard-[012].db' "$dir/far.db.slurm/merge.sh")" -eq 3 ] || fail "shards: $(cat "$dir/far.db.slurm/merge.sh")"
says "60 runs done, 0 found in the store, 0 failed" "$x" sweep "$spec" -o "$dir/one.db" --jobs 1 --export csv
mv "$dir/out" "$dir/one.csv"
test "$(wc -l <"$dir/one.csv")" -eq 61 || fail "not a line per run"
says "60 runs done" "$x" sweep "$spec" -o "$dir/two.db" --jobs 2 --export csv
cmp "$dir/one.csv" "$dir/out" || fail "two workers differ"
says "0 runs done, 60 found in the store" "$x" sweep "$spec" -o "$dir/one.db" --export csv
cmp "$dir/one.csv" "$dir/out" || fail "a repeat differs"

# an experiment with one policy more shares the runs: 15 are missing
sed 's/"fcfs",/"fcfs", "edf",/' "$spec" >"$dir/more.json"
says "15 runs done, 60 found in the store" "$x" sweep "$dir/more.json" -o "$dir/one.db"
# The kept data are a part of a run's identity.
sed 's/"energy_j"/"energy_idle_j"/' "$spec" >"$dir/other.json"
says "60 runs done, 0 found" "$x" sweep "$dir/other.json" -o "$dir/one.db"
says "0 runs done, 60 found" "$x" sweep "$spec" -o "$dir/one.db" --export csv
cmp "$dir/one.csv" "$dir/out" || fail "another experiment in the store changed this one"

for i in 0 1 2; do
    says " runs done" "$x" sweep "$spec" -o "$dir/shard$i.db" --shard $i/3
done
says "3 stores merged" "$x" merge -o "$dir/merged.db" "$dir"/shard?.db --export csv
cmp "$dir/one.csv" "$dir/out" || fail "merged shards differ"
says "0 runs done, 60 found" "$x" sweep "$spec" -o "$dir/merged.db"
says "3 stores merged" "$x" merge -o "$dir/merged.db" "$dir"/shard?.db --export csv
cmp "$dir/one.csv" "$dir/out" || fail "merged twice differs"
says "merged" "$x" merge -o "$dir/merged.db" "$dir/shard1.db" --export json
grep -c '"status":"ok"' "$dir/out" | grep -qx 60 || fail "JSON does not hold 60 runs"

# the same run with other numbers is not merged
cp "$dir/shard0.db" "$dir/false.db"
"$x" sweep -o "$dir/false.db" --export csv >/dev/null
says "merged" "$x" merge -o "$dir/false2.db" "$dir/false.db"
if command -v sqlite3 >/dev/null 2>&1; then
    sqlite3 "$dir/false.db" "UPDATE metrics SET energy_j = energy_j + 1 WHERE run_id = 3"
    "$x" merge -o "$dir/false2.db" "$dir/false.db" 2>"$dir/err" && fail "merged unlike runs"
    grep -q "differs" "$dir/err" || fail "does not say which run differs"
fi

# Sweeps are killed again and again. Starting takes most of such a short sweep, so some kills hit
# before the first run, and some after the last. Each must leave nothing, or a valid store.
for pause in 0.05 0.02 0.1 0.03 0.07; do
    "$x" sweep "$spec" -o "$dir/killed.db" --quiet &
    pid=$!
    sleep $pause
    kill -9 $pid 2>/dev/null
    wait $pid 2>/dev/null
done
says "0 failed" "$x" sweep "$spec" -o "$dir/killed.db" --export csv
cmp "$dir/one.csv" "$dir/out" || fail "killed and resumed differs"

# until: rounds of 3 replications
cat >"$dir/u.json" <<'END'
{"base": {"workload": "mixed:reactive_per_min=6,proactive_per_min=6,duration_s=60", "policy": "fcfs"},
 "axes": {"rate": [0.5, 1, 2]}, "replications": 3, "max_replications": 8,
 "until": {"reactive.e2e_s.mean": {"half_width_frac": 0.0001}}, "metrics": ["reactive.e2e_s.mean"]}
END
says "24 runs done" "$x" sweep "$dir/u.json" -o "$dir/u.db"
grep -q "3 points did not reach the half-widths in 8" "$dir/err" || fail "open points are not told"
# Narrow at once, but a point has ten replications at least.
sed 's/0.0001/1000/; s/"max_replications": 8/"max_replications": 100/' "$dir/u.json" >"$dir/v.json"
says "36 runs done" "$x" sweep "$dir/v.json" -o "$dir/v.db" --shard 1/1

# A point ends when the intervals that compare prints are narrow enough, also those of few skewed values.
cat >"$dir/w.json" <<'END'
{"base": {"workload": "mixed:duration_s=60", "soc": "core-ultra-7-258v", "llm": "qwen3-0.6b:bits=4"}, "axes": {"policy": ["fcfs", "edf"], "rate": [1, 2, 3]},
 "replications": 8, "max_replications": 200, "metrics": ["reactive.e2e_s.mean", "reactive.ttft_s.p95"],
 "until": {"reactive.e2e_s.mean": {"half_width_frac": 0.3}, "reactive.ttft_s.p95": {"half_width_frac": 0.4}}}
END
"$x" sweep "$dir/w.json" -o "$dir/w.db" -q && "$x" compare --store "$dir/w.db" --json -q >"$dir/w.out" || fail "no intervals"
python3 - "$dir/w.out" <<'END' || fail "a point ended with a wide interval"
import json, sys
limits = {"reactive.e2e_s.mean": 0.3, "reactive.ttft_s.p95": 0.4}
points = [p for c in json.load(open(sys.argv[1])) for p in c["policies"].values()]
wide = [(m, p[m]) for p in points for m in limits if (p[m]["high"] - p[m]["low"]) / 2 > limits[m] * p[m]["mean"]]
assert len(points) == 6 and not wide, wide
END

# two good policies, one that crashes and one that never returns
exit_of() { # sweep FILE with limits; leaves CSV in out
    "$x" sweep "$1" -o "$dir/f.db" --time-limit 1 --export csv >"$dir/out" 2>"$dir/err"
    echo $?
}
cat >"$dir/stuck.c" <<'END'
#include <stdlib.h>
#include "sim/api/policy.h"
static void arrived(struct sched *s, const struct request *r) { (void)s; (void)r; }
static void schedule(struct sched *s) { (void)s; if (STUCK) for (volatile int i = 0;; i = !i) ; abort(); }
static const struct policy_ops ops = {.name = NAME, .summary = "bad", .contract = POLICY_CONTRACT,
    .request_arrived = arrived, .schedule = schedule};
const struct policy_ops *xpusim_policy(void) { return &ops; }
END
for p in stuck crash; do
    ${CC:-cc} -std=c17 -D_POSIX_C_SOURCE=200809L -I. -fPIC -shared -DNAME="\"$p\"" \
        -DSTUCK=$([ $p = stuck ] && echo 1 || echo 0) -o "$dir/$p.so" "$dir/stuck.c" || fail "no plug-in"
done
printf '{"base": {"workload": "mixed:duration_s=60"}, "axes": {"policy": ["fcfs", "%s", "edf", "%s"]}, "metrics": ["energy_j"]}' \
    "$dir/crash.so" "$dir/stuck.so" >"$dir/f.json"
test "$(exit_of "$dir/f.json")" = 1 || fail "failed runs and exit 0"
test "$(grep -c ',ok,' "$dir/out")" -eq 2 || fail "the good policies did not run"
grep -q "killed by signal 6" "$dir/out" || fail "the crash is not recorded"
# On a machine that is too busy to give it 1 s of a processor the clock ends it.
grep -q "exceeded the limit of 1 s of CPU time\|did not return within" "$dir/out" || fail "the time limit is not recorded"
"$x" sweep "$dir/f.json" -o "$dir/g.db" --fail-fast --jobs 1 --time-limit 1 2>"$dir/err" && fail "fail-fast and exit 0"
grep -q "1 run done, 0 found in the store, 1 failed; stopped early" "$dir/err" || fail "--fail-fast did not stop"

# paths are relative to the experiment file, wherever the sweep is started
mkdir -p "$dir/study/in"
cp "$dir/crash.so" "$dir/study/in/crash.so"
printf 'input_tokens,output_tokens\n100,20\n' >"$dir/study/in/lengths.csv"
"$x" trace gen --workload mixed:duration_s=30 -o "$dir/study/in/t.csv" 2>"$dir/err" || fail "no trace: $(cat "$dir/err")"
cp hwmodels/soc/core-ultra-7-155h.json "$dir/study/in/my.json"
cat >"$dir/study/p.json" <<'END'
{"base": {"policy": "fcfs", "soc": "in/my.json"}, "metrics": ["all.arrived", "energy_j"],
 "rows": [{"trace": "in/t.csv"}, {"workload": "mixed:duration_s=60,reactive=in/lengths.csv,proactive=in/lengths.csv"}]}
END
# A workload file and its data set may lie in a folder of their own.
printf 'in,out\n100,20\n' >"$dir/study/in/own.csv"
echo '{"clients": [{"name": "a", "prompt_tokens": {"dataset": "own.csv", "column": "in"}, "answer_tokens": {"dataset": "own.csv", "column": "out"}}]}' \
    >"$dir/study/in/agents.json"
echo '{"reactive": "lengths.csv", "proactive": "lengths.csv", "duration_s": 60}' >"$dir/study/in/mixed.json"
echo '{"base": {"policy": "fcfs"}, "axes": {"workload": ["in/agents.json", "in/mixed.json"]}, "metrics": ["all.arrived"]}' >"$dir/study/w.json"
says "2 runs done, 0 found in the store, 0 failed" "$x" sweep "$dir/study/w.json" -o "$dir/w.db" --export csv
for at in "$dir" "$dir/study/in"; do
    (cd "$at" && "$x" trace gen --workload "$dir/study/in/agents.json") >"$dir/here.csv" || fail "a data set beside its workload, from $at"
    [ "$(sed -n 3p "$dir/here.csv" | cut -d, -f7,8)" = 100,20 ] || fail "the numbers of a data set beside its workload: $(cat "$dir/here.csv")"
done
printf '{"base": {"policy": "in/crash.so", "workload": "mixed:duration_s=20"}, "metrics": ["energy_j"]}' >"$dir/study/q.json"
says "2 runs done, 0 found in the store, 0 failed" "$x" sweep "$dir/study/p.json" -o "$dir/p.db" --export csv
(cd "$dir/study" && "$x" sweep p.json -o p.db --export csv --quiet) >"$dir/p.csv"
sed 's/.*,//' "$dir/out" >"$dir/a"
sed 's/.*,//' "$dir/p.csv" >"$dir/b"
cmp "$dir/a" "$dir/b" || fail "the place a sweep is started from makes a difference"
"$x" sweep "$dir/study/q.json" -o "$dir/q.db" --export csv >"$dir/out" 2>"$dir/err"
grep -q "killed by signal 6" "$dir/out" || fail "a plug-in beside the experiment file is not found: $(cat "$dir/err")"

# bad experiment files
refuse "no setting is called polcy" '{"axes": {"polcy": ["fcfs"]}}'
refuse "bad.json: axes.policy[1]" '{"axes": {"policy": ["fcfs", "nonesuch"]}}'
refuse "bad.json: axes.policy[1]: must be text" '{"axes": {"policy": ["fcfs", 3]}}'
refuse "axes.rate[0]: must be a number" '{"base": {"policy": "fcfs"}, "axes": {"rate": [-1]}}'
refuse "axes.policy: empty: 0 runs" '{"axes": {"policy": []}}'
refuse "a recorded trace is one replication" '{"base": {"policy": "fcfs", "trace": "t.csv"}, "replications": 2}'
refuse "rows: empty: 0 runs" '{"rows": []}'
refuse "axes.seed: from 5 to 1 by 1 is empty: 0 runs" '{"base": {"policy": "fcfs"}, "axes": {"seed": {"from": 5, "to": 1}}}'
refuse "1000000 runs (axes.seed 1000000 x replications 1)" '{"base": {"policy": "fcfs"}, "axes": {"seed": {"from": 1, "to": 1000000}}}'
refuse "10000000000 runs" '{"base": {"policy": "fcfs"}, "replications": 10000, "axes": {"seed": {"from": 1, "to": 1000000}}}'
refuse "zip[0].llm: has 1 value, zip[0].soc has 2" '{"zip": [{"soc": ["a", "b"], "llm": ["c"]}]}'
refuse "axes.rate: also set by rows" '{"axes": {"rate": [1]}, "rows": [{"policy": "fcfs", "rate": 2}]}'
refuse "axes.sim.nowhere[0]" '{"base": {"policy": "fcfs"}, "axes": {"sim.nowhere": [1, 2]}}'
refuse "axes.sim.contention[1]" '{"base": {"policy": "fcfs"}, "axes": {"sim.contention": ["none", "nonesuch"]}}'
refuse "axes.params.b_rf[1]" '{"base": {"policy": "agent-xpu-v2"}, "axes": {"params.b_rf": [1, -1]}}'
refuse "axes.workload.duration_s[0]" '{"base": {"policy": "fcfs"}, "axes": {"workload.duration_s": [-5, 60]}}'
refuse "rows[1].seed" '{"base": {"policy": "fcfs"}, "rows": [{"seed": 1}, {"seed": 1.5}]}'
refuse "metrics[1]: no metric is called speed" '{"base": {"policy": "fcfs"}, "metrics": ["energy_j", "speed"]}'
refuse "until.energy_j: not among" '{"base": {"policy": "fcfs"}, "replications": 2, "metrics": ["reactive.*"], "until": {"energy_j": {"half_width": 1}}}'
refuse "replications: must be at least 2" '{"base": {"policy": "fcfs"}, "until": {"energy_j": {"half_width": 1}}}'
refuse "horizon_s: 5 does not lie beyond" '{"base": {"policy": "fcfs"}, "horizon_s": 5, "warmup_s": 9}'
refuse "policy: missing" '{"axes": {"rate": [1, 2]}}'
refuse "replication: unknown key" '{"base": {"policy": "fcfs"}, "replication": 3}'
refuse "bad.json:1: malformed JSON" '{"base": '
printf 'no database' >"$dir/text.db"
"$x" sweep "$spec" -o "$dir/text.db" 2>"$dir/err" && fail "took a text file for a store"
"$x" sweep "$spec" -o "$dir/z.db" --shard 3/2 2>"$dir/err" && fail "took shard 3/2"
"$x" merge -o "$dir/z.db" "$dir/nonesuch.db" 2>"$dir/err" && fail "merged a missing file"
test ! -e "$dir/z.db" || fail "a store of nothing was made"
exit $bad
