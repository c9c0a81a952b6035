#!/bin/sh
# Every option of every command is in a page or in a test. Options that no other script uses must
# have their documented effect.
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
commands=$("$x" help | sed -n 's/^  \([a-z-]*\) .*/\1/p')
git ls-files '*.md' 'tests/*' 'docs/*' Makefile 'experiments/*.sh' 2>/dev/null | xargs grep -ohIE -- '--[a-z][a-z0-9-]*' | sort -u >"$dir/known"
if [ -s "$dir/known" ]; then # a tree without git has no list of its files
    for c in $commands; do
        "$x" help "$c" | sed -nE 's/^  (--[a-z0-9-]*[a-z0-9])( .*)?$/\1/p'
    done | sort -u | comm -23 - "$dir/known" >"$dir/unknown"
    [ -s "$dir/unknown" ] && fail "in no page and no test: $(tr '\n' ' ' <"$dir/unknown")"
fi

# sweep --yes: above 100,000 runs
echo '{"base": {"policy": "fcfs", "workload": "w1:n=2"}, "replications": 100001}' >"$dir/many.json"
"$x" sweep "$dir/many.json" -o "$dir/s.db" --dry-run >"$dir/out" 2>&1
[ $? = 2 ] && grep -q -- '--yes' "$dir/out" || fail "100001 runs without --yes: $(cat "$dir/out")"
"$x" sweep "$dir/many.json" -o "$dir/s.db" --dry-run --yes >"$dir/out" 2>&1 && grep -q '100001 runs' "$dir/out" || fail "--yes: $(cat "$dir/out")"
# run --timeline-detail: a prompt's launch is many kernels
for detail in launches kernels; do
    "$x" run --policy fcfs --workload w1:n=2 --soc core-ultra-5-125h --timeline "$dir/$detail.json" --timeline-detail $detail -q >/dev/null || fail "$detail"
done
[ "$(wc -c <"$dir/kernels.json")" -gt $((2 * $(wc -c <"$dir/launches.json"))) ] || fail "--timeline-detail kernels has no more than launches"
# run --csv has every value of --json by its name, also where a policy was refused something
"$x" run --policy fcfs --workload w1:n=2 -q --json >"$dir/run.json"
"$x" run --policy fcfs --workload w1:n=2 -q --csv >"$dir/run.csv"
python3 - "$dir/run.json" "$dir/run.csv" <<'END' || fail "run --csv"
import csv, json, math, sys

metrics = json.load(open(sys.argv[1]))["metrics"]
rows = dict(csv.reader(open(sys.argv[2])))
for name, x in metrics.items():
    assert rows["metrics." + name] == "" if x is None else math.isclose(float(rows["metrics." + name]), x, rel_tol=1e-14), name
END
# The answer of a command is in its CSV: causes of a latency, a rate, cells of a judgement.
"$x" explain --request 1 --policy fcfs --workload w1:n=2 -q --csv >"$dir/explain.csv"
grep -q '^latency_ns,[0-9]' "$dir/explain.csv" || fail "explain --csv: $(head -n 2 "$dir/explain.csv")"
"$x" search --policy fcfs --slo 'reactive.e2e_s.p90<=20' --workload mixed:duration_s=60 --replications 2 -q --csv >"$dir/search.csv"
grep -q '^policies\.fcfs\.met_rate_scale,' "$dir/search.csv" || fail "search --csv: $(head -n 2 "$dir/search.csv")"
"$x" arena judge edf fcfs --replications 2 -q --csv >"$dir/judge.csv"
for p in edf fcfs; do # 8 points with 4 metrics each
    [ "$(grep -c "^$p,.*_s.mean,[0-9]\|^$p,.*,energy_active_j_per_token,[0-9]" "$dir/judge.csv")" = 32 ] || fail "arena judge --csv: $(head -n 2 "$dir/judge.csv")"
done
# graphs --keep-old gives another block of memory, and no total that is longer. --nodes 1 gives no
# optimum.
graphs="graphs --p 10,10,10,10 --d 11,11,11,11 --s 20,20,20,20 --chunks 3 --csv"
# shellcheck disable=SC2086
{
    "$x" $graphs >"$dir/freed"
    "$x" $graphs --keep-old >"$dir/kept"
    "$x" $graphs --nodes 1 >"$dir/short"
}
grep '^strategies.exact.total,124$' "$dir/freed" >/dev/null || fail "graphs: $(cat "$dir/freed")"
grep '^strategies.left-shifted.total,122$' "$dir/kept" >/dev/null || fail "graphs --keep-old: $(cat "$dir/kept")"
grep '^strategies.exact.finished,true$' "$dir/short" >/dev/null && fail "graphs --nodes 1 finishes: $(grep exact "$dir/short")"
# validate --rows prints a line per row and the summary.
"$x" validate --points reference --soc core-ultra-9-185h >"$dir/summary"
"$x" validate --points reference --soc core-ultra-9-185h --rows >"$dir/rows"
[ "$(wc -l <"$dir/rows")" -gt "$(wc -l <"$dir/summary")" ] || fail "validate --rows: $(wc -l <"$dir/rows") lines"
# For validate a machine left out, rows that no fit takes, and powers by meter each give another
# table.
machine() { awk -F, -v soc="$1" '/^#/ || /^soc,/ || $1 == soc' hwmodels/points/reference.csv; }
machine core-ultra-7-255h >"$dir/points.csv"
machine core-ultra-7-165h >"$dir/apart.csv"
grep -h '^core' "$dir/apart.csv" | cat "$dir/points.csv" - >"$dir/both.csv"
left() { # machines, models, options...
    m="$1 machines, .* updated by $2 measured model"
    shift 2
    "$x" validate "$@" -q >"$dir/out" 2>&1
    grep -q "^$m" "$dir/out" || fail "validate $*: $(head -n 2 "$dir/out")"
}
left 2 1 --points "$dir/both.csv" --leave-machine-out 1
left 1 2 --points "$dir/points.csv" --leave-machine-out 2 --unseen "$dir/apart.csv"
"$x" validate --points "$dir/points.csv" --unseen "$dir/apart.csv" >"$dir/out" 2>&1
[ $? = 2 ] && grep -q -- '--unseen goes with' "$dir/out" || fail "validate --unseen alone: $(cat "$dir/out")"
"$x" validate --energy energy -q >"$dir/out" && grep -q '^energy: [0-9]* powers' "$dir/out" && grep -q 'without a source' "$dir/out" ||
    fail "validate --energy: $(head -n 3 "$dir/out")"
# Another table is compared, so nothing is fitted to print. A table is no other one to itself, and
# other tasks have no table to judge.
"$x" validate --energy energy --unseen energy-unseen -q >"$dir/out" && grep -q '^energy-unseen: [0-9]* powers, predicted by them' "$dir/out" &&
    ! grep -q 'without a source' "$dir/out" || fail "validate --energy --unseen: $(head -n 3 "$dir/out")"
{ sed 4q hwmodels/points/energy-unseen.csv && sed -n '$p' hwmodels/points/energy.csv; } >"$dir/mixed.csv"
"$x" validate --energy energy --unseen "$dir/mixed.csv" >"$dir/out" 2>&1
[ $? = 2 ] && grep -q "mixed.csv:5: the fit has this power, too (line $(wc -l <hwmodels/points/energy.csv))" "$dir/out" && [ "$(wc -l <"$dir/out")" = 1 ] ||
    fail "validate --energy --unseen with a power of the fit: $(cat "$dir/out")"
"$x" validate --corun corun --unseen unseen >"$dir/out" 2>&1
[ $? = 2 ] && grep -q -- '--unseen goes with' "$dir/out" || fail "validate --corun --unseen: $(cat "$dir/out")"
sed 4q hwmodels/points/energy-unseen.csv >"$dir/single.csv"
"$x" validate --energy "$dir/single.csv" -q >"$dir/out" && grep -q 'too few powers to fit$' "$dir/out" || fail "validate --energy of one power: $(cat "$dir/out")"
"$x" validate --energy energy --unseen "$dir/none.csv" >"$dir/out" 2>&1
[ $? = 2 ] && grep -q 'none.csv' "$dir/out" || fail "validate --energy --unseen of no file: $(cat "$dir/out")"
# validate --run takes a run that one machine served, and two of them behind either queue.
head -n 16 hwmodels/runs/vllm-rtx-4090-llama-3.1-8b.csv >"$dir/run.csv"
served() { # words before the machine, options...
    words=$1
    shift
    "$x" validate --run "$dir/run.csv" --soc rtx-4090 --llm llama-3.1-8b-bf16 --policy vllm-v1 -q "$@" >"$dir/out" 2>&1
    grep -q "^vllm-v1 on ${words}rtx-4090," "$dir/out" || fail "validate $*: $(head -n 2 "$dir/out")"
    grep '^  all' "$dir/out"
}
one=$(served "") two=$(served "2 replicas (round-robin) of " --replicas 2)
[ "$one" != "$two" ] || fail "validate --replicas changes nothing"
served "2 replicas (least-outstanding) of " --replicas 2 --queue least-outstanding >"$dir/said"
echo '{"base": {"policy": "fcfs", "workload": "w1:n=2"}, "replications": 2, "metrics": ["energy_j"]}' >"$dir/one.json"
# sweep: --slurm-option is a line of both jobs
"$x" sweep "$dir/one.json" -o "$dir/far.db" --slurm 2 --slurm-scripts --slurm-option=--mem=2G -q >/dev/null 2>&1
for job in array merge; do
    grep -q '^#SBATCH --mem=2G$' "$dir/far.db.slurm/$job.sh" || fail "--slurm-option: $job.sh: $(cat "$dir/far.db.slurm/$job.sh")"
done
# sweep --memory-limit lets a policy that takes 128 MB fail within 128 MB. merge --complete finds
# that one shard of two is not all.
cat >"$dir/hog.c" <<'END'
#include <stdlib.h>
#include <string.h>
#include "sim/api/policy.h"
static void arrived(struct sched *s, const struct request *r) { (void)s; (void)r; }
static void schedule(struct sched *s) { (void)s; char *p = malloc(1 << 27); if (p == NULL) abort(); memset(p, 1, 1 << 27); free(p); }
static const struct policy_ops ops = {.name = "hog", .summary = "hog", .contract = POLICY_CONTRACT,
    .request_arrived = arrived, .schedule = schedule};
const struct policy_ops *xpusim_policy(void) { return &ops; }
END
"${CC:-cc}" -std=c17 -D_POSIX_C_SOURCE=200809L -I. -fPIC -shared -o "$dir/hog.so" "$dir/hog.c" || fail "no plug-in"
printf '{"base": {"policy": "%s", "workload": "w1:n=2"}, "metrics": ["energy_j"]}' "$dir/hog.so" >"$dir/hog.json"
if grep -q __asan_init "$x"; then
    echo "skipped: the address sanitizer takes more address space than a run with a limit may have"
else
    for limit in 128 4096; do
        "$x" sweep "$dir/hog.json" -o "$dir/hog$limit.db" --memory-limit $limit --export csv -q 2>/dev/null >"$dir/hog$limit.csv"
    done
    grep -q 'killed by signal 6' "$dir/hog128.csv" && ! grep -q 'killed by signal 6' "$dir/hog4096.csv" ||
        fail "sweep --memory-limit: $(cat "$dir"/hog*.csv)"
fi
for shard in 1 2; do
    "$x" sweep "$dir/one.json" -o "$dir/shard$shard.db" --shard $shard/2 -q >/dev/null || fail "shard $shard"
done
"$x" merge -o "$dir/part.db" "$dir/shard1.db" --complete --export csv >"$dir/out" 2>/dev/null
[ $? = 1 ] && [ ! -s "$dir/out" ] || fail "merge --complete of one shard: $(cat "$dir/out")"
ls "$dir"/part.db* >/dev/null 2>&1 && fail "merge --complete of one shard leaves $(ls "$dir"/part.db*)"
cp "$dir/shard1.db" "$dir/old.db"
"$x" merge -o "$dir/old.db" "$dir/shard1.db" --complete -q >/dev/null 2>&1
[ $? = 1 ] && [ -s "$dir/old.db" ] || fail "merge --complete of one shard takes a store away that was there"
"$x" merge -o "$dir/whole.db" "$dir/shard1.db" "$dir/shard2.db" --complete --export csv >"$dir/out" 2>/dev/null
[ $? = 0 ] && [ "$(wc -l <"$dir/out")" -eq 3 ] || fail "merge --complete of two: $(cat "$dir/out")"
# claims --brief prints a line, and --scale takes another workload. --fit keeps its points in
# --state and its best in --witness.
claims() {
    "$x" claims B14 --reading taken --replications 2 -q "$@" || fail "claims $*"
}
claims >"$dir/long"
claims --brief >"$dir/brief"
claims --scale mixed:proactive_input_scale=2 >"$dir/scaled"
[ "$(grep -c B14 "$dir/brief")" = 1 ] && [ "$(wc -l <"$dir/brief")" -lt "$(wc -l <"$dir/long")" ] || fail "claims --brief: $(cat "$dir/brief")"
cmp -s "$dir/long" "$dir/scaled" && fail "claims --scale changes nothing"
sed 's/"igpu_rate"/"rate_of_mine"/' experiments/claims/open-125h.json >"$dir/mine.json"
fit() {
    "$x" claims --fit B14 --budget 3 --replications 2 -q "$@" || fail "claims --fit $*"
}
fit --over rate_of_mine --parameters "$dir/mine.json" --traces 2 --state "$dir/state" --witness "$dir/witness.json" >"$dir/fit"
grep -q rate_of_mine "$dir/fit" || fail "claims --parameters: $(cat "$dir/fit")"
"$x" claims B14 --reading taken --replications 2 --profile "$dir/witness.json" -q >"$dir/out" || fail "the witness is no profile"
cmp -s "$dir/long" "$dir/out" && fail "the witness is the profile that was there"
points() { sed 's/.*"points"://' "$dir/state"; }
points >"$dir/before"
fit --over rate_of_mine --parameters "$dir/mine.json" --traces 2 --state "$dir/state" >/dev/null
points | cmp -s - "$dir/before" || fail "claims --state: points that were there were simulated again"
sed 's/"mean":\[/"mean":[1,/' "$dir/state" >"$dir/damaged"
"$x" claims --fit B14 --budget 3 --replications 2 --over rate_of_mine --parameters "$dir/mine.json" --traces 2 --state "$dir/damaged" -q >/dev/null 2>"$dir/err"
[ $? = 2 ] && grep -q 'a point is damaged' "$dir/err" || fail "claims --state: a damaged point: $(cat "$dir/err")"
fit --over igpu_rate --traces 3 --state "$dir/three" >/dev/null
[ "$(grep -o '"traces":[0-9]*' "$dir/three")" = '"traces":3' ] || fail "claims --traces: $(head -c 200 "$dir/three")"
# --under ends the search with a claim that no machine in the ranges fulfils, and bounds it with a
# claim that some fulfil.
fit --over igpu_rate --under B20 >"$dir/some"
if [ -n "${WHOLE:-}" ]; then # a second and a half; check_claims_fit has one that excludes all, too
    fit --over igpu_rate --under B26 >"$dir/none"
    grep -q '{B26}' "$dir/none" && ! grep -q 'fresh traces' "$dir/none" || fail "claims --under B26: $(cat "$dir/none")"
fi
grep -q 'all hold on [1-9]' "$dir/some" && grep -q 'fresh traces' "$dir/some" || fail "claims --under B20: $(cat "$dir/some")"
# plot --y: the other column that varies
printf 'policy,rate,n,m\nedf,1,1,3\nedf,2,1,4\nfcfs,1,2,5\nfcfs,2,2,6\n' >"$dir/map.csv"
if command -v gnuplot >/dev/null 2>&1; then
    for y in policy n; do
        "$x" plot heatmap --format svg -o "$dir/$y" --metric m --x rate --y $y "$dir/map.csv" || fail "plot --y $y"
    done
    grep -q '>policy<' "$dir/policy/heatmap.svg" && grep -q '>n<' "$dir/n/heatmap.svg" || fail "plot --y: the axis is not named"
    # 1006 is 335 times 3: all digits, and logarithmic colours; 6 is twice 3
    sed 's/^fcfs,2,2,6/fcfs,2,2,1006/' "$dir/map.csv" >"$dir/steep.csv"
    "$x" plot heatmap --format svg -o "$dir/steep" --metric m --x rate --y n "$dir/steep.csv" || fail "plot of a steep map"
    grep -q '>1006<' "$dir/steep/heatmap.svg" && grep -q 'log scale' "$dir/steep/heatmap.svg" || fail "a steep map is linear"
    grep -q 'log scale' "$dir/n/heatmap.svg" && fail "a flat map is logarithmic"
    # in a column of a paper texts at an axis leave too little for two maps: one below the other, x from left to right, and
    # no digits in cells that are narrower
    for p in edf fcfs; do for r in 1 4 16; do printf '%s\n' "$p,$r,slow-machine,$r.25" "$p,$r,quick-machine,$r.75"; done; done |
        sed '1i policy,rate,soc,m' >"$dir/paper.csv"
    "$x" plot heatmap --format svg --columns 1 -o "$dir/paper" --metric m --x rate --y soc "$dir/paper.csv" || fail "plot --columns 1"
    sed "s/<text/\\n&/g" "$dir/paper/heatmap.svg" | sed -n "s/^<text x='\([0-9]*\)' y='[0-9]*' text-anchor='middle'>\(1\|4\|16\)<.*/\2 \1/p" >"$dir/tics"
    [ "$(cut -d' ' -f1 "$dir/tics" | tr '\n' ' ')" = "1 4 16 1 4 16 " ] && [ "$(sort -nk2 "$dir/tics" | uniq)" = "$(sed -n 1,3p "$dir/tics")" ] ||
        fail "maps in a column: $(cat "$dir/tics")"
    grep -q '4.25' "$dir/paper/heatmap.svg" && fail "digits wider than their cells"
    # of a name that has no room the end is drawn
    printf 'policy,a,b\na-policy-of-a-very-long-name:with=parameters,1,2\nb,2,3\n' >"$dir/pareto.csv"
    "$x" plot pareto --format svg --columns 1 -o "$dir/paper" --metric a --metric b "$dir/pareto.csv" || fail "plot pareto --columns 1"
    grep -q '>…=parameters<' "$dir/paper/pareto.svg" || fail "a long name in a column: $(grep -o '>[^<]*parameters<' "$dir/paper/pareto.svg")"
    # the two lines above a narrow figure take 38 pixels, and its key two rows below them
    "$x" run --policy fcfs --soc core-ultra-7-258v --llm qwen3-4b:bits=4 --workload mixed:duration_s=60 --timeline "$dir/t.json" -q >/dev/null || fail "a timeline"
    for figure in queue:reactive ddr:carried; do
        "$x" plot "${figure%:*}" --format svg --columns 1 -o "$dir/paper" "$dir/t.json" || fail "plot ${figure%:*} --columns 1"
        y=$(sed "s/<text/\\n&/g" "$dir/paper/${figure%:*}.svg" | sed -n "s/^<text x='[0-9]*' y='\([0-9]*\)'[^>]*>${figure#*:}<.*/\1/p")
        [ "${y:-0}" -gt 44 ] || fail "${figure%:*}: the key is at ${y:-no} pixels, on the lines above the figure"
    done
fi
# trace import: --link makes the second prompt, which continues the first one's blocks, its session's next turn;
# --sample takes a share of four sessions
printf '{"timestamp": %s, "input_length": %s, "output_length": 10, "hash_ids": [%s]}\n' 0 1024 "1, 2" 9000 1536 "1, 2, 3" >"$dir/m.jsonl"
for link in "" --link; do
    # shellcheck disable=SC2086
    "$x" trace import "$dir/m.jsonl" $link 2>/dev/null | tail -n +3 | cut -d, -f2,3,9 | tr '\n' ' ' >"$dir/linked$link"
done
[ "$(cat "$dir/linked")" = "0,0,0 1,0,0 " ] && [ "$(cat "$dir/linked--link")" = "0,0,0 0,1,1024 " ] || fail "trace import --link: $(cat "$dir"/linked*)"
for share in 0.3 1; do
    "$x" trace import tests/samples/aiperf-0.13.0.jsonl --sample $share 2>/dev/null | tail -n +3 | cut -d, -f2 | sort -u | wc -l >"$dir/sessions$share"
done
[ "$(cat "$dir/sessions1")" = 4 ] && [ "$(cat "$dir/sessions0.3")" -lt 4 ] || fail "trace import --sample: $(cat "$dir"/sessions*)"
# check-policy --capable: devices that can stop are used otherwise
for how in "" --capable; do
    # shellcheck disable=SC2086
    "$x" check-policy hpf --load 2 $how --decisions "$dir/decisions$how" >/dev/null || fail "check-policy $how"
done
cmp -s "$dir/decisions" "$dir/decisions--capable" && fail "check-policy --capable changes no decision"
# measure --pairs: rows of two devices only; --spread-s: the pause is part of what is announced
kinds() { awk -F, '!/^#/ && !/^soc,/ { print ($18 == "" ? "alone" : "pair") }' "$1" | sort -u | tr '\n' ' '; }
for only in pairs alone; do
    "$x" measure --backend sim --$only -o "$dir/$only.csv" -q >/dev/null || fail "measure --$only"
done
[ "$(kinds "$dir/pairs.csv")" = "pair " ] && [ "$(kinds "$dir/alone.csv")" = "alone " ] || fail "measure --pairs: $(kinds "$dir/pairs.csv"), --alone: $(kinds "$dir/alone.csv")"
for pause in 0 2; do # 2 s between two repetitions
    "$x" measure --backend native --devices cpu0 --alone --size tiny --repetitions 2 --window-s 0.001 --samples 3 --retries 0 \
        --pool-mb 16 --spread-s $pause -o "$dir/spread$pause.csv" 2>&1 | sed -n 's/.*windows of .*: \([0-9]*\) s at least.*/\1/p' >"$dir/least$pause"
done
[ "$(cat "$dir/least2")" -eq $(($(cat "$dir/least0") + 2)) ] || fail "measure --spread-s: $(cat "$dir"/least*)"
exit $bad
