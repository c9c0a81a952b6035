#!/bin/sh
# --store gives the same bytes as no store, runs nothing twice, and is killed and resumed.
# Comparisons read back from a store alone say the same as when they ran.
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
# Runs a command without a store, with a new one, and again. All three must be equal, and the second
# time nothing must run.
alike() { # name, command...
    name=$1
    shift
    "$x" "$@" >"$dir/plain" 2>"$dir/plain.err"
    want=$?
    "$x" "$@" --store "$dir/$name.db" >"$dir/first" 2>"$dir/first.err"
    test $? -eq $want || fail "$name: another exit status with a store"
    "$x" "$@" --store "$dir/$name.db" >"$dir/again" 2>"$dir/again.err"
    test $? -eq $want || fail "$name: another exit status the second time"
    cmp "$dir/plain" "$dir/first" || fail "$name: a store changes what is printed"
    cmp "$dir/plain" "$dir/again" || fail "$name: runs that are read back change what is printed"
    grep -qE ': [1-9][0-9]* runs added' "$dir/first.err" || fail "$name: nothing was kept"
    grep -qF ": 0 runs added" "$dir/again.err" || fail "$name: $(cat "$dir/again.err")"
}
says() { # text, command...
    want=$1
    shift
    "$x" "$@" >"$dir/out" 2>"$dir/err" || fail "$*: $(cat "$dir/err")"
    grep -qF -- "$want" "$dir/err" || fail "$*: wanted \"$want\", got $(cat "$dir/err")"
}
refuse() { # text, command...
    want=$1
    shift
    "$x" "$@" >"$dir/out" 2>"$dir/err"
    test $? -eq 2 || fail "$*: not refused"
    grep -qF -- "$want" "$dir/err" || fail "$*: wanted \"$want\", got $(cat "$dir/err")"
}

small="mixed:reactive_per_min=6,proactive_per_min=9,duration_s=40,output_scale=0.5"
two="--policy fcfs --policy agent-xpu-v2 --workload $small --replications 5"
# shellcheck disable=SC2086
{
    alike compare compare $two --json
    alike sketch compare $two --json --sketch
    alike tune compare $two --tune 4 --tune-replications 2
    alike uncertainty compare ${two% 5} 2 --uncertainty 16
    alike load compare $two --load 0.5,1.2
    # With nine requests or fewer every order is tried: seconds. A minute has more.
    alike regret compare --policy fcfs --policy agent-xpu-v2 --workload $(echo $small | sed s/duration_s=40/duration_s=60/) --replications 2 --regret
    alike search search --policy fcfs --workload "$small" --slo 'reactive.e2e_s.p90<=20' --replications 3 --precision 0.5
    alike falsify falsify --policy fcfs --baseline edf --workload "$small" --budget 8 --replications 1 --confirm 3
    alike claims claims B15 --replications 2 --reading taken
}
cat >"$dir/gate.json" <<'JSON'
{"format": 1, "groups": [{"name": "g", "soc": "core-ultra-5-125h", "llm": "llama-3.2-3b", "test": "exact", "seed": 1, "replications": 2,
  "workload": "mixed:duration_s=30", "policies": ["fcfs", "edf"], "metrics": [{"name": "reactive.e2e_s.mean", "better": "lower"}]}]}
JSON
if "$x" gate --baseline "$dir/gate.json" --update --quiet >/dev/null 2>"$dir/err"; then
    alike gate gate --baseline "$dir/gate.json" --all
else
    fail "gate: $(cat "$dir/err")"
fi

# One policy more runs alone; other seeds, settings and workloads are other runs.
# shellcheck disable=SC2086
{
    says "5 runs added, 10 found there" compare $two --policy edf --store "$dir/compare.db"
    says "10 runs added, 0 found there" compare $two --seed 2 --store "$dir/compare.db"
    says "10 runs added, 0 found there" compare $two --set sim.contention=none --store "$dir/compare.db"
    says "10 runs added, 0 found there" compare $two --ttft-slo 2 --store "$dir/compare.db"
    says "10 runs added, 0 found there" compare $two --sketch --store "$dir/compare.db"
}
# A sweep of the same cells finds them, and its own are found.
cat >"$dir/s.json" <<JSON
{"name": "s", "base": {"workload": "$small"}, "axes": {"policy": ["fcfs", "agent-xpu-v2", "vtc"]}, "replications": 5}
JSON
says "5 runs done, 10 found in the store" sweep "$dir/s.json" --store "$dir/compare.db"
says "0 runs added, 5 found there" compare --policy vtc --workload "$small" --replications 5 --store "$dir/compare.db"

# The command is killed again and again, then resumed, and gives the bytes of an undisturbed one.
# shellcheck disable=SC2086
{
    many="${two% --replications 5} --replications 20"
    "$x" compare $many --json >"$dir/whole"
    for pause in 0.05 0.1 0.02 0.2; do
        "$x" compare $many --json --quiet --store "$dir/killed.db" >/dev/null 2>&1 &
        pid=$!
        sleep $pause
        kill -9 $pid 2>/dev/null
        wait $pid 2>/dev/null
    done
    "$x" compare $many --json --quiet --store "$dir/killed.db" >"$dir/resumed"
    cmp "$dir/whole" "$dir/resumed" || fail "killed and resumed differs"
}

# A store alone gives the output of the first run, where the original files are missing.
# shellcheck disable=SC2086
"$x" compare $two --store "$dir/one.db" --quiet >"$dir/said"
mkdir -p "$dir/empty/hwmodels/soc"
(cd "$dir" && XPUSIM_DATA_DIR=$dir/empty "$x" compare --store one.db) >"$dir/read" 2>"$dir/err" || fail "$(cat "$dir/err")"
cmp "$dir/said" "$dir/read" || fail "a comparison from the store says something else"
# Data are equal also for recordings, and by another share that counts as equal.
for seed in 1 2; do
    "$x" trace gen --workload "$small" --seed $seed -o "$dir/t$seed.csv" || fail "trace gen"
done
recorded="--policy fcfs --policy agent-xpu-v2 --trace $dir/t1.csv"
same_data() { # options of compare | options of compare --store
    rm -f "$dir/data.db"
    # shellcheck disable=SC2086
    "$x" compare ${1%|*} --store "$dir/data.db" --json --quiet >"$dir/said"
    # shellcheck disable=SC2086
    "$x" compare --store "$dir/data.db" ${1#*|} --json >"$dir/read"
    python3 - "$dir/said" "$dir/read" <<'PY' || fail "a comparison from the store differs as data: $1"
import json, sys
said, read = json.load(open(sys.argv[1])), json.load(open(sys.argv[2]))
assert len(read) == 1
for key in said:
    if key == "about":  # by which command differs
        for part in (said[key], read[0][key]):
            part.pop("command")
            part.pop("version")
    assert said[key] == read[0][key], key
PY
}
same_data "$recorded|"
same_data "$recorded --trace $dir/t2.csv|"
same_data "$two --relevance 60|--relevance 60"
grep -q '"relevance_frac":[[:space:]]*0.6' "$dir/read" || fail "--relevance 60 is not in the document"
same_data "$two|"
# Metrics that only other runs of a store have are in no comparison.
# shellcheck disable=SC2086
"$x" compare $two --quantile 90.5 --store "$dir/data.db" -q >/dev/null
# shellcheck disable=SC2086
"$x" compare $two --json -q | grep -v '"command"' >"$dir/said"
# shellcheck disable=SC2086
"$x" compare $two --json -q --store "$dir/data.db" | grep -v '"command"' | diff "$dir/said" - >/dev/null || fail "metrics of other runs of a store"
"$x" report "$dir/said" --no-figures -o "$dir/said.html" 2>"$dir/err" || fail "report: $(cat "$dir/err")"
"$x" report --store "$dir/one.db" --no-figures -o "$dir/read.html" 2>"$dir/err" || fail "report --store: $(cat "$dir/err")"
grep -q '<p>Written ' "$dir/read.html" && fail "a page from a store has the date of a file: $(grep -o '<p>Written .\{20\}' "$dir/read.html")"
# but for the lines that say by which command, and when
grep -v '^<pre>\|^<p>Written\|^<p>By ' "$dir/said.html" >"$dir/said"
grep -v '^<pre>\|^<p>Written\|^<p>By ' "$dir/read.html" >"$dir/read"
diff "$dir/said" "$dir/read" || fail "the page of a store differs from that of the comparison"
"$x" report --store "$dir/load.db" --no-figures -o "$dir/load.html" || fail "report of loads"
# its sections differ in their names: title (twice), contents and heading have each load
grep -o 'load [0-9.]* of [^<,]*' "$dir/load.html" | sort | uniq -c | awk '{ n++; bad = bad || $1 != 4 } END { exit bad || n != 2 }' ||
    fail "loads in a page: $(grep -o 'load [0-9.]* of [^<,]*' "$dir/load.html")"
test "$(grep -c '<h2><a href="#c' "$dir/load.html")" -eq 2 || fail "loads are not a section each"
refuse "holds no experiment" report --store "$dir/search.db" -o "$dir/none.html"
test ! -e "$dir/none.html" || fail "a page of nothing"
# A fault of a comparison of a store is reported as the store's: a figure lacks its metric, and a
# page its begin.
metrics() { # store, metrics
    echo "{\"axes\": {\"policy\": [\"fcfs\", \"edf\"]}, \"base\": {\"workload\": \"w1:n=2\"}, \"metrics\": [\"$2\"]}" >"$dir/$1.json"
    "$x" sweep "$dir/$1.json" -o "$dir/$1.db" -q || fail "a store of $2"
}
metrics first reactive.e2e_s.mean
metrics other energy_j
"$x" report --store "$dir/first.db" --no-figures -o "$dir/some.html" || fail "a page of one metric"
"$x" report --store "$dir/first.db" -o "$dir/some.html" 2>"$dir/err" || fail "a page of one metric, with figures: $(cat "$dir/err")"
grep -q '<svg' "$dir/some.html" || fail "no figure of a store of one metric"
grep -q 'Energy per token' "$dir/some.html" && fail "the energy of a store that keeps none"
# Two texts of one name, as after a change of the file, are distinguished by their number.
for n in 2 3; do
    echo "{\"name\": \"twice\", \"axes\": {\"policy\": [\"fcfs\", \"edf\"], \"rate\": [1, 2]}, \"base\": {\"workload\": \"w1:n=2\"}, \"replications\": $n, \"metrics\": [\"energy_j\"]}" >"$dir/twice.json"
    "$x" sweep "$dir/twice.json" -o "$dir/twice.db" -q || fail "two texts of one name"
done
"$x" compare --store "$dir/twice.db" -q | grep '^====' >"$dir/said"
sed 's/, xpusim .*/"}/' "$dir/said" >"$dir/heads"
for id in 1 2; do
    for rate in 1 2; do
        echo "==== twice: {\"rate\":$rate,\"experiment\":\"$id\"}"
    done
done | diff - "$dir/heads" || fail "two texts of one name"
# A policy of the base has its parameters in the label, but those that a point replaces.
echo '{"base": {"workload": "w1:n=2", "policy": "edf:max_batch=4,token_budget=256"}, "axes": {"params.max_batch": [1, 8]}, "metrics": ["energy_j"]}' >"$dir/of.json"
"$x" sweep "$dir/of.json" -o "$dir/of.db" -q || fail "a policy in the base"
"$x" compare --store "$dir/of.db" --metric energy_j --csv -q | cut -d, -f6,7 | tr '\n' ' ' | grep -q '"edf:token_budget=256,max_batch=1" "edf:token_budget=256,max_batch=8"' ||
    fail "labels of a policy in the base: $("$x" compare --store "$dir/of.db" --metric energy_j --csv -q)"
# Points of a suite that differ only in their rate are two comparisons of a store. A load is a factor on the rate of the point.
cat >"$dir/rates.json" <<'END'
{"suite": {"about": "two rates", "references": ["fcfs", "edf"]}, "base": {"workload": "mixed:duration_s=60", "seed": 7},
 "rows": [{"point": "slow", "rate": 0.5}, {"point": "fast", "rate": 1.5}], "replications": 3, "metrics": ["energy_j"]}
END
"$x" compare --suite "$dir/rates.json" --policy fcfs --policy edf --store "$dir/rates.db" -q >/dev/null || fail "a suite in a store"
test "$("$x" compare --store "$dir/rates.db" --metric energy_j -q | grep '^====' | tr '\n' ' ')" = '==== compare: {"rate":0.5} ==== compare: {"rate":1.5} ' || fail "a point of a suite is lost"
"$x" compare --suite "$dir/rates.json" --policy fcfs --policy edf --load 0.5 --json -q >"$dir/rates"
python3 - "$dir/rates" <<'END' || fail "the load of a point with a rate"
import json, sys
for p, rate in zip(json.load(open(sys.argv[1]))["points"], (0.5, 1.5)):
    want = rate * 0.5 * p["capacity_req_per_min"] / p["offered_req_per_min"]
    assert abs(p["loads"][0]["rate_scale"] - want) < 1e-12, (p["point"], p["loads"][0]["rate_scale"], want)
END
# Each of two experiments has its name above it, also where nothing but the policy varies.
for name in one two; do
    echo "{\"name\": \"$name\", \"axes\": {\"policy\": [\"fcfs\", \"edf\"]}, \"base\": {\"workload\": \"w1:n=2\"}, \"metrics\": [\"energy_j\"]}" >"$dir/named.json"
    "$x" sweep "$dir/named.json" -o "$dir/named.db" -q || fail "two names"
done
test "$("$x" compare --store "$dir/named.db" -q | grep '^====' | tr '\n' ' ')" = "==== one ==== two " || fail "no names above two experiments"
test "$(cut -d: -f1-5 "$dir/err")" = "xpusim: note: without the figure pareto: $dir/first.db: comparison 1" || fail "figures left out: $(cat "$dir/err")"
refuse "$dir/other.db: comparison 1: policies.fcfs: has no reactive.e2e_s.mean" report --store "$dir/other.db" -o "$dir/none.html"
test ! -e "$dir/none.html" || fail "a page of a comparison without its metric"
# Runs that all failed have nothing to compare, and a number of a replication without a run is
# damage.
echo '{"axes": {"policy": ["fcfs", "edf"]}, "base": {"workload": "w1:n=2", "sim.kv_capacity_tokens": 16}, "metrics": ["energy_j"]}' >"$dir/failing.json"
"$x" sweep "$dir/failing.json" -o "$dir/failing.db" -q 2>/dev/null && fail "a sweep of failures exits with 0"
refuse "no run of it has a result" compare --store "$dir/failing.db"
refuse "no run of it has a result" report --store "$dir/failing.db" -o "$dir/none.html"
python3 - "$dir/first.db" <<'PY' || fail "the store is not damaged"
import sqlite3, sys
db = sqlite3.connect(sys.argv[1])
tables = [t for (t,) in db.execute("select name from sqlite_master where type = 'table'")]
table = next(t for t in tables if "replication" in [c[1] for c in db.execute(f"pragma table_info({t})")])
db.execute(f"update {table} set replication = 60000 where replication = (select max(replication) from {table})")
db.commit()
PY
refuse "results, numbered up to 60001" compare --store "$dir/first.db"
"$x" compare --store "$dir/load.db" --json >"$dir/read"
python3 - "$dir/read" <<'PY' || fail "loads are not one comparison each"
import json, sys
read = json.load(open(sys.argv[1]))
assert len(read) == 2 and all(set(c["settings"]) == {"rate"} and len(c["policies"]) == 2 for c in read)
assert read[0]["settings"]["rate"] < read[1]["settings"]["rate"]
PY
"$x" compare --policy fcfs --policy edf --baseline edf --workload "$small" --replications 2 --load 0.4,0.2 --store "$dir/based.db" -q >"$dir/said"
"$x" compare --store "$dir/based.db" | sed 's/^==== compare: \(.*\) (\(.*\))$/==== \1: \2/; /^core-ultra-5-125h/d' >"$dir/read"
sed '1,2d; /^core-ultra-5-125h/d' "$dir/said" | diff - "$dir/read" || fail "loads of another baseline than the first"
# A setting that is a word is an axis like any other: paired by replication.
cat >"$dir/axis.json" <<JSON
{"name": "axis", "base": {"workload": "$small"}, "axes": {"llm": ["llama-3.2-3b", "llama-3.1-8b"], "policy": ["agent-xpu-v2", "pd-static"]},
 "replications": 4, "metrics": ["reactive.*", "backlog.verdict"]}
JSON
"$x" sweep "$dir/axis.json" -o "$dir/axis.db" --quiet
"$x" compare --store "$dir/axis.db" --by llm --baseline llama-3.2-3b --metric 'reactive.tbt_s.mean' >"$dir/out" || fail "--by"
grep -q 'llama-3.1-8b  *[0-9.]* \[.*\].*significant' "$dir/out" || fail "no paired difference over an axis of words: $(cat "$dir/out")"
# Machines in one comparison have warnings of their own: 8-bit weights have an entry on the first, none on the second.
cat >"$dir/socs.json" <<JSON
{"name": "socs", "base": {"workload": "$small", "policy": "fcfs"}, "axes": {"soc": ["core-ultra-5-125h", "ryzen-ai-max-395"]},
 "metrics": ["reactive.*", "backlog.verdict"]}
JSON
"$x" sweep "$dir/socs.json" -o "$dir/socs.db" --quiet
"$x" compare --store "$dir/socs.db" --by soc --json >"$dir/out" || fail "--by soc"
python3 - "$dir/out" <<'PY' || fail "warnings of the second machine"
import json, sys
said = json.load(open(sys.argv[1]))[0]["warnings"]
assert "ryzen-ai-max-395: igpu has no parameters for 8-bit weights: those of its default runtime are used" in said, said
assert not any("igpu has no" in s and not s.startswith("ryzen-ai-max-395: ") for s in said), said
PY
refuse "not in experiment" compare --store "$dir/axis.db" --baseline nonesuch
refuse "--by lmm: no point of the store has this setting; there are llm, policy" compare --store "$dir/axis.db" --by lmm
refuse "no run has it" compare --store "$dir/axis.db" --metric energy_j
for option in "--load 0.5" "--soc rtx-4090" "--soc core-ultra-5-125h" "--llm llama-3.2-1b" "--seed 2" "--replications 3" "--machine m.json" "--ttft-slo 1" "--suite laptop-2026.1"; do
    # shellcheck disable=SC2086
    refuse "options of runs" compare --store "$dir/axis.db" $option
done
refuse "belongs to --store without --policy" compare --policy fcfs --by policy
refuse "nonesuch.db" compare --store "$dir/nonesuch.db"
printf 'no database' >"$dir/text.db"
refuse "text.db" compare --policy fcfs --store "$dir/text.db"

# A policy's own counters are metrics. A policy that was compiled again is another one, and failed
# runs are not kept.
"$x" new-policy mine -o "$dir/mine" >/dev/null 2>"$dir/err" || fail "new-policy: $(cat "$dir/err")"
so() { # sed script: the policy changed so
    sed "$1" "$dir/mine/mine.c" >"$dir/mine.c"
    ${CC:-cc} -std=c17 -D_POSIX_C_SOURCE=200809L -I. -fPIC -shared -o "$dir/mine.so" "$dir/mine.c" || fail "no plug-in"
}
plug="compare --policy $dir/mine.so --policy fcfs --workload $small --replications 3 --store $dir/plug.db"
so 's/reqq_push(.*/& (void)sched_note(s, "arrivals_seen", 2);/'
# shellcheck disable=SC2086
{
    says "6 runs added, 0 found there" $plug --metric 'counters.policy.*' --metric all.arrived --metric counters.schedule_rounds
    grep -qF counters.policy.arrivals_seen "$dir/out" || fail "no counter of the policy's own: $(cat "$dir/out")"
    says "0 runs added, 6 found there" $plug --metric counters.policy.arrivals_seen --json
}
python3 - "$dir/out" <<'PY' || fail "the counter does not count"
import json, sys
policies = json.load(open(sys.argv[1]))["policies"]
mine = next(p for name, p in policies.items() if name.endswith("mine.so"))
assert mine["counters.policy.arrivals_seen"]["mean"] == 2 * mine["all.arrived"]["mean"] > 0
PY
refuse "no run has it" compare --policy fcfs --workload "$small" --metric counters.policy.nonesuch
refuse "no metric is called so" compare --policy fcfs --workload "$small" --metric counters.nonesuch
so 's/reqq_push(.*/& (void)sched_note(s, "arrivals_seen", 3);/'
# shellcheck disable=SC2086
says "3 runs added, 3 found there" $plug
so 's/reqq_push(.*/& abort();/; 1s/^/#include <stdlib.h>\n/'
# shellcheck disable=SC2086
{
    "$x" $plug >"$dir/out" 2>"$dir/err" && fail "a crash and exit 0"
    grep -qF ": 0 runs added, 3 found there" "$dir/err" || fail "a crash is kept: $(cat "$dir/err")"
}
# ---- a store that cannot be written: the system's reason, at each write ----
echo '{"name": "t", "base": {"workload": "w1:n=1"}, "axes": {"policy": ["fcfs"]}, "replications": 50, "metrics": ["all.*"]}' >"$dir/full.json"
for blocks in 4 16 32 64 200; do # of 512 or 1024 bytes; the last ones are over while results are written
    rm -f "$dir"/full.db*
    (trap '' XFSZ && ulimit -f $blocks && exec "$x" sweep "$dir/full.json" -o "$dir/full.db") >"$dir/out" 2>"$dir/err"
    status=$?
    [ $status -eq 2 ] && grep -q "^xpusim: error: $dir/full.db: .*: File too large$" "$dir/err" ||
        fail "a store over the limit of file size, $blocks blocks: exit $status, $(cat "$dir/err")"
done
# A full disk has no room to move the log of writes into the file. So the log stays, and a message
# says so. With room the results are those of a store that never was full.
sed 's/50/2000/' "$dir/full.json" >"$dir/more.json"
# shellcheck disable=SC2016
disk='mount -t tmpfs -o size=256k none "$2/disk" && cd "$2/disk" &&
    { "$1" sweep ../more.json -o full.db -q 2>../err; echo $? >../status; ls >../left; } &&
    mount -o remount,size=16m "$2/disk" && "$1" sweep ../more.json -o full.db -q --export csv >../continued.csv && ls >>../left'
mkdir "$dir/disk"
if unshare -rm true 2>"$dir/err"; then
    unshare -rm sh -c "$disk" sh "$x" "$dir" || fail "a disk with room again"
    [ "$(tr '\n' ' ' <"$dir/left")" = "full.db full.db-shm full.db-wal full.db " ] || fail "files of a full disk: $(cat "$dir/left")"
    [ "$(cat "$dir/status" "$dir/err")" = "2
xpusim: error: full.db: database or disk is full; finished results are in it and in full.db-wal: keep both, and the same command continues when there is room" ] ||
        fail "a full disk: $(cat "$dir/status" "$dir/err")"
    (cd "$dir" && "$x" sweep more.json -o roomy.db -q --export csv) | cmp - "$dir/continued.csv" || fail "a store that was full has other results"
else
    echo "not tried, a full disk: $(cat "$dir/err")"
fi
rm -f "$dir"/full.db*
"$x" sweep "$dir/full.json" -o "$dir/full.db" -q
(trap '' XFSZ && ulimit -f 8 && exec "$x" merge -o "$dir/merged.db" "$dir/full.db") >"$dir/out" 2>"$dir/err"
[ $? -eq 2 ] && grep -q "^xpusim: error: $dir/merged.db: .*: File too large$" "$dir/err" || fail "merge over the limit: $(cat "$dir/err")"
# A row's printed settings are those of its run: more policies than loads, and more loads than
# policies.
for case in "fcfs edf agent-xpu-v2/0.5,1.2" "fcfs edf/0.4,0.8,1.2"; do
    options=$(printf -- '--policy %s ' ${case%/*})
    # shellcheck disable=SC2086
    "$x" compare $options --workload "$small" --replications 2 --load "${case#*/}" --store "$dir/points.db" --json -q >"$dir/points.json" || fail "compare at loads: $case"
    "$x" sweep -o "$dir/points.db" --export csv >"$dir/points.csv" || fail "export: $case"
    rm "$dir/points.db"
    python3 - "$dir/points.json" "$dir/points.csv" <<'END' || fail "points of loads: $case"
import collections, csv, json, sys
loads = json.load(open(sys.argv[1]))["loads"]
rows = [r for r in csv.DictReader(open(sys.argv[2])) if r["set.rate"]]
for r in rows:
    assert r["policy"] == r["set.policy"] and abs(float(r["rate_scale"]) - float(r["set.rate"])) < 1e-12, [r[k] for k in ("point", "policy", "rate_scale", "set.policy", "set.rate")]
of = collections.defaultdict(list)
for r in rows:
    of[r["policy"], float(r["rate_scale"])].append(float(r["all.e2e_s.mean"]))
points = {(policy, load["rate_scale"]): m["all.e2e_s.mean"]["mean"] for load in loads for policy, m in load["policies"].items()}
assert of.keys() == points.keys() and len({r["point"] for r in rows}) == len(points) >= 6, (of.keys(), points.keys())
for key, values in of.items():
    assert len(values) == 2 and abs(sum(values) / 2 - points[key]) <= 1e-9 * points[key], (key, values, points[key])
END
done
exit $bad
