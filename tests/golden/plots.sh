#!/bin/sh
# Each figure draws from exported results. A figure that cannot be drawn is refused with a reason,
# and nothing half-written is left.
set -u
cd "$(dirname "$0")/../.." || exit 2
x=$PWD/${BUILD:-build}/xpusim
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
bad=0
fail() { echo "FAILED: $*"; bad=1; }

short="--workload mixed:reactive_per_min=6,proactive_per_min=12,duration_s=60 --seed 3"
two="--policy fcfs --policy agent-xpu-v2"
# shellcheck disable=SC2086
{
    "$x" compare $two --replications 2 $short --json >"$dir/cmp.json"
    "$x" compare $two --replications 2 --load 0.4,0.8 $short --json --quiet >"$dir/load.json"
    "$x" run --policy agent-xpu-v2 $short --requests "$dir/r.csv" --timeline "$dir/t.json" --json >"$dir/run.json"
}
"$x" list kernels --json >"$dir/k.json"
"$x" characterize affinity batch chunk corun mixed prompt verify --csv >"$dir/study.csv"
"$x" characterize schemes --llm llama-3.2-1b:bits=4 --replications 2 --csv >"$dir/schemes.csv"
"$x" graphs --p 10,10 --d 11,11 --s 20,20 --chunks 2 --gantt --json >"$dir/g.json"
cat >"$dir/spec.json" <<EOF
{"name": "grid", "base": {"workload": "mixed:reactive_per_min=6,proactive_per_min=12,duration_s=30",
 "policy": "agent-xpu-v2"}, "axes": {"params.b_rf": [1, 3], "rate": [0.5, 1.5]}, "replications": 2}
EOF
"$x" sweep "$dir/spec.json" -o "$dir/s.db" --export csv --quiet >"$dir/sweep.csv"
printf 'victim,aggressor,slowdown\na,b,1.5\nb,a,1.1\n' >"$dir/corun.csv"
printf 'device,batch,latency_s,low,high\nigpu,1,0.05,0.04,0.06\nigpu,8,0.07,0.06,0.08\n' >"$dir/batch.csv"
printf 'draft_tokens,verify_s\n1,0.05\n4,0.06\n' >"$dir/draft.csv"
# shellcheck disable=SC2086
"$x" explain --interference --policy fcfs $short --json >"$dir/i.json"
"$x" explain --job 3 --policy fcfs --workload leader-subagents --json --quiet >"$dir/j.json"

# shellcheck disable=SC2086
"$x" compare --policy fcfs --policy agent-xpu-v2 $short --replications 1 --uncertainty 64 --quiet --json >"$dir/u.json"
cat >"$dir/d.json" <<EOF
{"about": {"kind": "drive"}, "means": [{"class": "reactive", "policy": "fcfs", "e2e_s": {"real": 1, "simulated": 1.1}},
  {"class": "proactive", "policy": "fcfs", "e2e_s": {"real": 2, "simulated": 1.9}}],
 "drive": [{"policy": "fcfs", "requests": [{"class": "reactive", "repeat": 0,
  "real_ttft_s": 0.5, "sim_ttft_s": 0.6, "real_e2e_s": 1, "sim_e2e_s": 1.1}, {"class": "proactive", "repeat": 0,
  "real_ttft_s": 1.5, "sim_ttft_s": 1.4, "real_e2e_s": 2, "sim_e2e_s": 1.9}]}]}
EOF

input_of() {
    case $1 in
    kernels | roofline) echo k.json ;;
    affinity | mixed | prompt) echo study.csv ;;
    batch | corun | draft | schemes) echo "$1.csv" ;;
    cdf | lengths) echo r.csv ;;
    chunk | heatmap) echo sweep.csv ;;
    ddr | queue | gantt) echo t.json ;;
    graphs) echo g.json ;;
    drive) echo d.json ;;
    causes | interference) echo i.json ;;
    job) echo j.json ;;
    tornado) echo u.json ;;
    latency-rate | throughput-rate | pareto) echo load.json ;;
    *) echo cmp.json ;;
    esac
}

# Every figure of the list has a script and draws, and every script belongs to one. Both formats
# come from the same script. PNG is drawn of four, of a bar, a map, a schedule and a line, and of
# all with WHOLE=yes.
names=$("$x" plot list | awk '{print $1}')
[ "$(echo "$names" | wc -l)" -ge 20 ] || fail "a short list: $names"
for name in $names; do
    [ -f "plots/$name.gp" ] || fail "$name has no script"
    case ${WHOLE:-$name} in yes | headline | heatmap | gantt | latency-rate) format=both ;; *) format=svg ;; esac
    if ! "$x" plot "$name" -o "$dir/fig" --format $format --to 60 "$dir/$(input_of "$name")" 2>"$dir/err"; then
        fail "$name: $(cat "$dir/err")"
    fi
    grep -q '</svg>' "$dir/fig/$name.svg" || fail "$name: no picture"
    [ $format = svg ] || [ "$(head -c 4 "$dir/fig/$name.png" | tail -c 3)" = PNG ] || fail "$name: no PNG"
    [ -s "$dir/fig/$name.tsv" ] || fail "$name: no data"
done
# A decode batch has its true length also between whole numbers of seconds. A key is not cut off
# below.
grep -o "stroke='#009e73' d='[^']*'" "$dir/fig/queue.svg" | grep -q "M[0-9.]* [0-9.]*h[0-9.]" || fail "queue: no decode batches"
"$x" plot causes -o "$dir/one" --format svg "$dir/i.json" || fail "causes of one policy"
high=$(sed -n "s/.*viewBox='0 0 [0-9.]* \([0-9]*\)'.*/\1/p" "$dir/one/causes.svg" | head -n 1)
low=$(grep -o "<text x='[0-9.]*' y='[0-9]*" "$dir/one/causes.svg" | sed "s/.*y='//" | sort -n | tail -n 1)
[ "$low" -le "$high" ] || fail "causes: a text at $low in a picture of $high"
for f in plots/*.gp; do
    name=$(basename "$f" .gp)
    case $name in style | functions | axes | lines | bars | stacked | distributions | legend | ytics | no_rows | paper) continue ;; esac
    echo "$names" | grep -qx "$name" || fail "$f: not in the list"
done
[ -z "$(find "$dir/fig" -name '.*' -mindepth 1)" ] || fail "temporary files are left"
grep -q 'agent-xpu-v2' "$dir/fig/latency-rate.svg" || fail "latency-rate does not name a policy"
"$x" plot headline --format svg -o "$dir/$(printf './%.0s' $(seq 1200))again" "$dir/cmp.json" && cmp "$dir/fig/headline.svg" "$dir/again/headline.svg" || bad=1

# Numbers are by hand. Two replications of 1 and 3 s have mean 2, standard error 1 and t(0.975, 1) =
# 12.706, so the interval is [-10.706, 14.706]. A row with its own low and high keeps them. Then
# come runs, and overloaded ones.
printf 'policy,rate,m\na,1,1\na,1,3\na,2,5\nb,1,7\nb,2,8\n' >"$dir/h.csv"
"$x" plot latency-rate --format svg -o "$dir/h" --metric m "$dir/h.csv" || fail "plain CSV"
printf 'a\n1\t2\t-10.7062\t14.7062\t2\t0\n2\t5\t5\t5\t1\t0\n\n\nb\n1\t7\t7\t7\t1\t0\n2\t8\t8\t8\t1\t0\n' >"$dir/want"
awk -F'\t' 'NF == 6 {printf "%g\t%g\t%.6g\t%.6g\t%d\t%d\n", $1, $2, $3, $4, $5, $6; next} {print}' "$dir/h/latency-rate.tsv" |
    diff "$dir/want" - || fail "means and intervals"
# (Throughput, latency) is (1, 1), (2, 3), (3, 2), so the second has less of both than the third.
printf 'policy,t,l\na,1,1\nb,2,3\nc,3,2\n' >"$dir/p.csv"
"$x" plot pareto --format svg -o "$dir/h" --metric t --metric l "$dir/p.csv" || fail "pareto"
sed -n '/^Pareto/,$p' "$dir/h/pareto.tsv" | cut -f 1,2 | tail -n +2 >"$dir/got"
printf '1\t1\n3\t2\n' | diff - "$dir/got" || fail "the Pareto front"
# No policy has more throughput than 1 at latency 1, so the line goes up to 2, and then to the
# right. For a metric of which less is better, it goes to the right at the first one's value.
front="stroke='#767676' stroke-dasharray='[0-9.,]*' d='M[0-9.]* [0-9.]*"
grep -q "${front}v-[0-9.]*h[0-9.]*'" "$dir/h/pareto.svg" || fail "the line of the Pareto front"
printf 'policy,energy_j,reactive.e2e_s.mean\na,1,3\nb,2,2\n' >"$dir/p.csv"
"$x" plot pareto --format svg -o "$dir/h" --metric energy_j --metric reactive.e2e_s.mean "$dir/p.csv" || fail "pareto of losses"
grep -q "${front}h[0-9.]*v[0-9.]*'" "$dir/h/pareto.svg" || fail "the line of the Pareto front of losses"

# A job is drawn by hand. Request 0 waits 1 s, prefills to 3 and answers to 5. Request 1 arrives at
# 7 and never gets a token. Request 2, proactive and in the background, is at its prefill from 5 to
# 6. Rows are by arrival: 0, 2, 1.
cat >"$dir/job.json" <<'EOF'
{"about": {"kind": "job"}, "requests": [
 {"request_id": 0, "class": "reactive", "background": false, "on_path": true, "arrival_ns": 1e9, "first_service_ns": 2e9, "first_token_ns": 4e9, "end_ns": 6e9},
 {"request_id": 1, "class": "reactive", "background": false, "on_path": true, "arrival_ns": 8e9, "first_service_ns": 8e9, "first_token_ns": null, "end_ns": 9e9},
 {"request_id": 2, "class": "proactive", "background": true, "on_path": false, "arrival_ns": 6e9, "first_service_ns": 6e9, "first_token_ns": 7e9, "end_ns": 7e9}],
 "edges": [{"from": 0, "to": 1, "on_path": true}, {"from": 0, "to": 2, "on_path": false}]}
EOF
"$x" plot job --format svg -o "$dir/h" "$dir/job.json" || fail "job"
cat >"$dir/want" <<'EOF'
waiting
0 0 1
reactive prefill
0 1 3
2 7 8
reactive answer
0 3 5
proactive prefill
1 5 6
proactive answer
critical path
0 0 5
2 7 8
other edges
0 5 1 5
critical edges
0 5 2 7
whole
0 0 5
1 5 6
2 7 8
EOF
tr '\t' ' ' <"$dir/h/job.tsv" | grep . | diff "$dir/want" - || fail "rows of a job"
grep -q '2 (background)' "$dir/h/job.svg" || fail "a background request is not named so"

# A label is text: a % in it is no format, a quote no end of the string, and a line break no
# command.
sed 's/"fcfs/"f 50% of %s %d/g' "$dir/cmp.json" >"$dir/percent.json"
"$x" plot headline --format svg -o "$dir/pc" "$dir/percent.json" || fail "a % in a label"
[ "$(grep -cF 'f 50% of %s %d' "$dir/pc/headline.svg")" -ge 1 ] || fail "the label with % is not in the figure"
[ "$(grep -cF 'agent-xpu-v2' "$dir/fig/headline.svg")" -ge 1 ] || fail "headline does not name a policy"
# Names of files and folders are no commands to gnuplot or to a shell. The first two are refused,
# and the others are drawn with their names. A user's own start file is not read.
nl=$(printf '\n_')
nl=${nl%_}
mkdir "$dir/user" "$dir/here"
echo "system('touch $dir/pwned')" >"$dir/user/.gnuplot"
inject() { # where it ran; command...
    (cd "$dir/here" && HOME="$dir/user" "$@" >"$dir/out" 2>"$dir/err")
    [ ! -e "$dir/pwned" ] && [ ! -e "$dir/here/pwned" ] || fail "gnuplot ran a command: $*"
    rm -f "$dir/pwned" "$dir/here/pwned"
}
inject "$x" plot headline -o "out${nl}system(\"touch pwned\")${nl}x=1 #" "$dir/cmp.json"
grep -q "line break" "$dir/err" || fail "a line break in a name is not refused"
inject env TMPDIR="$dir/here${nl}system(\"touch pwned\")${nl}#" "$x" report -o "$dir/page.html" "$dir/cmp.json"
inject env XPUSIM_DATA_DIR="$dir/here${nl}system(\"touch pwned\")${nl}#" "$x" plot headline -o f "$dir/cmp.json"
inject env XPUSIM_DATA_DIR="<touch pwned;" "$x" plot headline -o f "$dir/cmp.json"
for odd in "|touch pwned;" "<touch pwned;" "-e" "\`touch pwned\`" "a'b" 'a"b' "~"; do
    inject "$x" plot headline --format svg -o "$odd" "$dir/cmp.json"
    [ -s "$dir/here/$odd/headline.svg" ] || fail "a folder of the name $odd: $(cat "$dir/err")"
done
# A device or a link stays one.
mkdir "$dir/links"
ln -s "$dir/target.svg" "$dir/links/headline.svg"
"$x" plot headline --format svg -o "$dir/links" "$dir/cmp.json" || fail "a figure through a link"
[ -L "$dir/links/headline.svg" ] && [ -s "$dir/target.svg" ] || fail "a figure replaced a link"

# Every figure says of which machine it is, where its file says so. None writes a number as 1e+06,
# and all elements of small figures are closed.
for name in $names; do
    case $name in graphs | corun | batch | draft | schemes | drive) continue ;; esac # plain files, and pure times
    grep -q 'core-ultra-5-125h' "$dir/fig/$name.svg" || fail "$name does not name its SoC"
    grep -q 'llama-3.2-3b' "$dir/fig/$name.svg" || fail "$name does not name its model"
done
for name in ddr gantt queue cdf interference causes; do
    policy=agent-xpu-v2
    case $name in interference | causes) policy=fcfs ;; esac
    grep -q "$policy" "$dir/fig/$name.svg" || fail "$name does not name its policy"
done
for name in $names; do
    grep -qE '>[-0-9.]+e[-+][0-9]+<' "$dir/fig/$name.svg" && fail "$name has a tic like 1e+06"
    [ "$(grep -o '<g[ >]' "$dir/fig/$name.svg" | wc -l)" -eq "$(grep -o '</g>' "$dir/fig/$name.svg" | wc -l)" ] ||
        fail "$name: groups do not close"
done
grep -q '>npu<' "$dir/fig/kernels.svg" || fail "kernels has no legend"
grep -q '>-5<' "$dir/fig/batch.svg" && fail "batch has a negative batch"
# One policy has one colour, in any order of policies: blue is openvino-cb's, vermilion
# agent-xpu-v2's.
printf 'policy,rate,m\nzz,1,1\nzz,2,2\nagent-xpu-v2,1,1\nagent-xpu-v2,2,2\nopenvino-cb,1,3\nopenvino-cb,2,3\n' >"$dir/c.csv"
"$x" plot latency-rate --format svg -o "$dir/c" --metric m "$dir/c.csv" || fail "three policies"
colour_of() { # policy: of the line drawn beside its name in the legend
    grep -o ">$1</text><path [^>]*stroke='[^']*'\|>$1</text></g><g[^>]*color='[^']*'" "$dir/c/latency-rate.svg" |
        sed "s/.*='\(#[0-9a-fA-F]*\)'.*/\1/" | tail -n 1
}
[ "$(colour_of agent-xpu-v2)" = "#d55e00" ] || fail "agent-xpu-v2 is $(colour_of agent-xpu-v2)"
[ "$(colour_of openvino-cb)" = "#0072b2" ] || fail "openvino-cb is $(colour_of openvino-cb)"
# Overload shows at the mean, as a mark at the bar and a ring at the point. An outlier is cut and
# says its value.
printf 'experiment,fingerprint,set.rate,policy,verdict,m\n' >"$dir/o.csv"
printf 'e,1,1,a,STABLE,2\ne,2,1,a,OVERLOADED,4\ne,3,2,a,STABLE,2\ne,4,2,a,STABLE,2\n' >>"$dir/o.csv"
"$x" plot latency-rate --format svg -o "$dir/o" --metric m "$dir/o.csv" || fail "verdicts"
sed -n 's/^1\t.*\t\(.*\t.*\)$/\1/p' "$dir/o/latency-rate.tsv" | tee "$dir/got" >/dev/null
printf '2\t1\n' | diff - "$dir/got" || fail "one of two runs is overloaded"
grep -q 'overloaded in some runs' "$dir/o/latency-rate.svg" || fail "the ring is not in the legend"
sed 's/"stable":[^,]*,/"stable":\t1,/; s/"overloaded":[^,]*,/"overloaded":\t1,/' "$dir/cmp.json" >"$dir/over.json"
"$x" plot headline --format svg -o "$dir/o" "$dir/over.json" || fail "an overloaded comparison"
grep -q 'overloaded in 1 of' "$dir/o/headline.svg" || fail "headline does not say that a policy was overloaded"

# Results come by a pipe, too, and draw the same figure. Tables, which figures read again, do not.
if command -v gnuplot >/dev/null; then
    "$x" plot headline --format svg -o "$dir/of-file" "$dir/cmp.json" >/dev/null && "$x" plot headline --format svg -o "$dir/of-pipe" - <"$dir/cmp.json" >/dev/null &&
        cmp "$dir/of-file/headline.tsv" "$dir/of-pipe/headline.tsv" || fail "a figure of standard input"
fi
cat "$dir/r.csv" | "$x" plot cdf -o "$dir/of-pipe" - 2>"$dir/err" && fail "a table of a pipe is drawn"
grep -q "a pipe: a table or a timeline must be in a file" "$dir/err" || fail "a table of a pipe: $(cat "$dir/err")"

refuse() { # text the message must hold, command...
    want=$1
    shift
    "$@" >"$dir/out" 2>"$dir/err"
    status=$?
    if [ $status -ne 2 ] || ! grep -qF -- "$want" "$dir/err"; then
        echo "FAILED (exit $status, wanted 2 and \"$want\"): $*"
        cat "$dir/err"
        bad=1
    fi
}
# Answers of one token have no time per token: that panel is empty, and the others are drawn.
printf 'class,ttft_s,tpot_s,e2e_s\nreactive,1,,1\nreactive,2,,2\n' >"$dir/one.csv"
"$x" plot cdf --format svg -q -o "$dir/one" "$dir/one.csv" || fail "plot cdf without a time per token"
[ "$(grep -c 'no values' "$dir/one/cdf.svg")" -eq 1 ] || fail "plot cdf does not say which panel has no values"
mkdir "$dir/nothing"
none="-o $dir/none"
# shellcheck disable=SC2086
{
    refuse "no figure is called" "$x" plot nonesuch "$dir/cmp.json"
    refuse "NAME is missing" "$x" plot
    refuse "no input" "$x" plot headline $none
    refuse "gnuplot is not installed" env PATH="$dir/nothing" "$x" plot headline $none "$dir/cmp.json"
    refuse "No such file" "$x" plot headline $none "$dir/absent.json"
    refuse "no metric nonesuch" "$x" plot headline $none --metric nonesuch "$dir/cmp.json"
    refuse "cdf draws no metric that one can choose, and --metric was given 1 time" "$x" plot cdf $none --metric ttft_s "$dir/r.csv"
    refuse "two metrics, x and y, and --metric was given 1 time" "$x" plot pareto $none --metric energy_j "$dir/cmp.json"
    refuse "heatmap draws one metric" "$x" plot heatmap $none --metric energy_j --metric drain_s "$dir/sweep.csv"
    refuse "no metric reactive.e2e_s.mean" "$x" plot latency-rate $none "$dir/h.csv"
    refuse 'cmp.json: of the kind "compare"; latency-rate reads: compare --load' "$x" plot latency-rate $none "$dir/cmp.json"
    printf '[{"about": {"kind": "compare"}, "policies": {}}]' >"$dir/stored.json" # as compare --store --json
    refuse 'stored.json: of the kind "compare-store"; headline reads: compare --json' "$x" plot headline $none "$dir/stored.json"
    refuse 'stored.json: comparisons of a store; `xpusim report --store FILE.db` draws them' "$x" report "$dir/stored.json" -o "$dir/stored.html"
    printf '{"suite": "s", "points": [{"point": "x", "about": {"kind": "compare"}, "policies": {}}]}' >"$dir/suite.json" # as compare --suite --json
    "$x" compare --policy fcfs --policy edf --select 0.9 --indifference 50% --workload mixed:duration_s=100 --load 0.3 --json -q >"$dir/load-select.json"
    "$x" compare --policy fcfs --policy edf --select 0.9 --indifference 50% --workload mixed:duration_s=100 --json -q >"$dir/select.json"
    for s in load-select select; do
        refuse "$s.json: of the kind \"selection\"; latency-rate reads: compare --load --json" "$x" plot latency-rate $none "$dir/$s.json"
        refuse "$s.json: a selection, in which policies stop as they fall behind" "$x" report "$dir/$s.json" -o "$dir/select.html"
    done
    refuse 'suite.json: of the kind "compare-suite"; headline reads: compare --json' "$x" plot headline $none "$dir/suite.json"
    refuse 'suite.json: comparisons at the points of a suite; keep them with --store' "$x" report "$dir/suite.json" -o "$dir/suite.html"
    printf 'policy,m\na,1\n' >"$dir/norate.csv"
    refuse "cdf reads: run --requests CSV" "$x" plot cdf $none "$dir/sweep.csv"
    refuse "no rate or load varies" "$x" plot latency-rate $none --metric m "$dir/norate.csv"
    "$x" graphs --p 10 --d 11 --s 20 --chunks 2 --json >"$dir/totals.json"
    refuse "no strategies/{strategy}/intervals" "$x" plot graphs $none "$dir/totals.json"
    refuse "latency-rate draws these unless --metric NAME names others" "$x" plot latency-rate $none "$dir/h.csv"
    refuse "not a number of every point of the input; there are: rate" "$x" plot latency-rate $none --x nonesuch --metric m "$dir/h.csv"
    refuse "axis nonesuch" "$x" plot chunk $none --x nonesuch "$dir/sweep.csv"
    refuse "cannot make the folder" "$x" plot headline -o "$dir/cmp.json/below" "$dir/cmp.json"
    refuse "cannot write there" "$x" plot headline -o "$dir/cmp.json" "$dir/cmp.json"
    refuse "of the kind" "$x" plot ddr $none "$dir/cmp.json"
    refuse "nothing ran between" "$x" plot gantt $none --from 5000 --to 5001 "$dir/t.json"
    refuse "nothing between" "$x" plot ddr $none --from 5000 --to 5001 "$dir/t.json"
    refuse "not after" "$x" plot gantt $none --from 5 --to 4 "$dir/t.json"
    refuse "of the kind" "$x" plot drive $none "$dir/cmp.json"
    refuse "of the kind" "$x" plot graphs $none "$dir/cmp.json"
    refuse "of the kind" "$x" plot roofline $none "$dir/cmp.json"
    refuse "of the kind" "$x" plot headline $none "$dir/run.json"
    refuse "of the kind" "$x" plot job $none "$dir/i.json"
    sed 's/"end_ns"/"ends"/' "$dir/job.json" >"$dir/noend.json"
    refuse "no column end_ns" "$x" plot job $none "$dir/noend.json"
    "$x" plot draft -o "$dir/fig" "$dir/study.csv" || fail "draft of a study"
    sed 's/"flop_per_byte"/"flops"/' "$dir/k.json" >"$dir/old.json"
    refuse "old.json: no column flop_per_byte; there are: " "$x" plot roofline $none "$dir/old.json"
    printf '{"about": {"kind": "compare"}' >"$dir/half.json"
    refuse "half.json:1: malformed JSON" "$x" plot headline $none "$dir/half.json"
    refuse "kernels takes one input, not 2" "$x" plot kernels $none "$dir/k.json" "$dir/k.json"
    refuse "no column class" "$x" plot cdf $none "$dir/batch.csv"
    refuse "of the kind" "$x" plot interference $none "$dir/run.json"
    printf 'a,b\n1\n' >"$dir/ragged.csv"
    refuse "ragged.csv:2: 1 field, the header has 2" "$x" plot heatmap $none "$dir/ragged.csv"
    printf 'device,batch,latency_s\nigpu,1,fast\n' >"$dir/text.csv"
    refuse 'text.csv:2: column latency_s: "fast"' "$x" plot batch $none "$dir/text.csv"
    # A store without a run: its export has a header and nothing else.
    head -n 1 "$dir/sweep.csv" >"$dir/empty.csv"
    refuse "empty.csv: no rows" "$x" plot heatmap $none "$dir/empty.csv"
    : >"$dir/void.csv"
    refuse "void.csv: empty: no header line" "$x" plot heatmap $none "$dir/void.csv"
}
# A figure for papers is a PDF of the requested width (3.33 and 7 inches of 72 points, whole
# points), with names of policies and no line above.
pdf_width() { grep -a -m1 MediaBox "$1" | sed 's/.*\[ *0 0 \([0-9]*\).*/\1/'; }
# An interval that continues beyond its panel has no end mark there. Two policies are in two panels
# of the breakdown.
python3 - "$x" "$dir" <<'EOF' || fail "an interval that is cut"
import json, subprocess, sys
x, d = sys.argv[1:]
def strokes(name, high):
    t = json.load(open(f"{d}/cmp.json"))
    for p in t["policies"].values():
        for m in p.values():
            m.update(mean=0.6, low=0.5, high=high)  # the axis of a bar ends at twice that
    json.dump(t, open(f"{d}/wide.json", "w"))
    asked = ["--metric", "reactive.e2e_s.mean"] if name == "headline" else []
    subprocess.run([x, "plot", name, *asked, "--format", "svg", "-o", f"{d}/wide", f"{d}/wide.json"], check=True, stdout=subprocess.DEVNULL)
    return open(f"{d}/wide/{name}.svg").read().count("M")
lost = [strokes("headline", 1.19) - strokes("headline", 300), strokes("breakdown", 3.59) - strokes("breakdown", 300)]
sys.exit(print(lost) or 1 if lost != [2, 4] else 0)
EOF
"$x" plot latency-rate -o "$dir/paper" --format pdf --columns 1 --font 8 "$dir/load.json" || fail "a PDF of one column"
[ "$(pdf_width "$dir/paper/latency-rate.pdf")" = 239 ] || [ "$(pdf_width "$dir/paper/latency-rate.pdf")" = 240 ] || fail "one column is $(pdf_width "$dir/paper/latency-rate.pdf") points"
# Three decades of a metric have a long title in 3.33 inches, and no text leaves the figure.
printf 'policy,rate,reactive.ttft_s.mean\nfcfs,1,1\nfcfs,2,40\nedf,1,1\nedf,2,900\n' >"$dir/steep.csv"
"$x" plot latency-rate -o "$dir/paper" --format svg --columns 1 --metric reactive.ttft_s.mean "$dir/steep.csv" || fail "a steep figure of one column"
grep -q "log scale" "$dir/paper/latency-rate.svg" || fail "steep means on a linear axis"
for name in breakdown causes drive gantt graphs headline job kernels roofline tornado utilisation; do
    "$x" plot $name -o "$dir/narrow" --format svg --columns 1 "$dir/$(input_of $name)" || fail "$name of one column"
done
grep -q ">decode<" "$dir/narrow/breakdown.svg" || fail "the legend of breakdown is cut off"
python3 tests/helpers/texts_inside.py "$dir/paper/latency-rate.svg" "$dir"/narrow/*.svg || fail "texts of one column"
# For values from 1 to 1,000 of a parameter each decade has the same room, a third of the axis.
printf 'policy,k,m\na,1,1\na,10,2\na,100,3\na,1000,4\n' >"$dir/decades.csv"
"$x" plot latency-rate -o "$dir/decades" --format svg --x k --metric m "$dir/decades.csv" || fail "a parameter over three decades"
python3 - "$dir/decades/latency-rate.svg" <<'EOF' || fail "decades of a parameter are not equally far apart"
import re, sys
svg = open(sys.argv[1]).read()
at = {text: float(x) for x, text in re.findall(r"<text x='([\d.]+)' y='[\d.]+' text-anchor='middle'>(1|10|100|1000)<", svg)}
steps = [at["10"] - at["1"], at["100"] - at["10"], at["1000"] - at["100"]]
sys.exit(print(steps) or 1 if max(steps) - min(steps) > 3 else 0)
EOF
"$x" plot headline -o "$dir/paper" --format pdf --columns 2 "$dir/cmp.json" || fail "a PDF of two columns"
[ "$(pdf_width "$dir/paper/headline.pdf")" = 504 ] || fail "two columns are $(pdf_width "$dir/paper/headline.pdf") points"
[ ! -e "$dir/paper/headline.svg" ] && [ -s "$dir/paper/headline.tsv" ] || fail "a PDF alone, and its data"
"$x" plot headline -o "$dir/paper" --format svg --no-title --label agent-xpu-v2=Ours --metric reactive.e2e_s.mean "$dir/cmp.json" || fail "--label"
grep -q ">Ours<" "$dir/paper/headline.svg" || fail "the figure does not have the name"
grep -qE "agent-xpu-v2|llama" "$dir/paper/headline.svg" && fail "the figure has the policy's own name, or the line above"
grep -q "D55E00\|d55e00" "$dir/paper/headline.svg" || fail "another name has another colour"
grep -q "proactive" "$dir/paper/headline.tsv" && fail "a panel that was not chosen"
refuse "no input has a policy nonesuch" "$x" plot headline -o "$dir/none" --label nonesuch=a "$dir/cmp.json"
refuse "must be POLICY=NAME" "$x" plot headline -o "$dir/none" --label nonesuch "$dir/cmp.json"
# Two schedules, one above the other: rows of both, and of a device that one of them leaves idle.
# shellcheck disable=SC2086
"$x" run --policy fcfs $short --timeline "$dir/t2.json" -q >/dev/null
"$x" plot gantt -o "$dir/paper" --format svg --to 30 "$dir/t2.json" "$dir/t.json" || fail "gantt of two"
for row in "fcfs: igpu" "fcfs: npu" "agent-xpu-v2: npu"; do grep -q ">$row<" "$dir/paper/gantt.svg" || fail "gantt of two without $row"; done
# The tornado's bars go from the longest to the shortest, none of length zero.
"$x" plot tornado -o "$dir/paper" --format svg "$dir/u.json" || fail tornado
awk -F'\t' '$1 == "\"factors\"" || $1 == "factors" { on = 1; next } NF < 4 { on = 0 } on { lo = hi = $2; for (i = 3; i <= 4; i++) { if ($i < lo) lo = $i; if ($i > hi) hi = $i }
    if (hi == lo || (n++ && hi - lo > last + 1e-12)) bad = 1; last = hi - lo } END { exit bad || !n }' "$dir/paper/tornado.tsv" || fail "the tornado is not sorted: $(head -5 "$dir/paper/tornado.tsv")"
[ ! -e "$dir/none" ] || fail "a refused figure left $(find "$dir/none")"
exit $bad
