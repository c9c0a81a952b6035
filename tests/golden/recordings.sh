#!/bin/sh
# Recorded traces are a sample. One is one observation, several are one replication each, and
# redrawn sessions are called so.
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
w=mixed:reactive_per_min=6,proactive_per_min=9,duration_s=120
mkdir "$dir/r"
for i in 1 2 3; do
    $x trace gen --workload $w --seed $i -o "$dir/r/t$i.csv" 2>/dev/null || fail "no trace"
done
metric=reactive.e2e_s.mean
two="--policy fcfs --policy edf --metric $metric"

# One trace has no interval, no p and no significance, in any form.
for form in "" --json --csv --markdown; do
    # shellcheck disable=SC2086
    $x compare $two --trace "$dir/r/t1.csv" --replications 10 $form >"$dir/one$form" 2>&1 || fail "one recording $form"
    grep -q "significant\|bootstrap-t" "$dir/one$form" && fail "one recording is judged as a sample $form"
done
grep -q "one recorded trace: one run per policy, and the result holds for this trace" "$dir/one" || fail "no word on the sample"
$x report "$dir/one--json" -o "$dir/one.html" 2>/dev/null && grep -q "The sample:.* holds for this trace" "$dir/one.html" || fail "the page does not say it"

# Several: each recording under its replication's seed, and nothing else. `run` gives the values one by one.
# shellcheck disable=SC2086
$x compare $two --trace "$dir/r/t1.csv" --trace "$dir/r/t2.csv" --trace "$dir/r/t3.csv" --json >"$dir/many" 2>/dev/null || fail "three recordings"
# shellcheck disable=SC2086
$x compare $two --trace "$dir/r" --json >"$dir/folder" 2>/dev/null || fail "a folder"
# shellcheck disable=SC2086
$x compare $two --trace "$dir/r/t?.csv" --replications 2 --json >"$dir/pattern" 2>/dev/null || fail "a pattern"
python3 - "$x" "$dir" $metric <<'PY' || fail "not the mean over the recordings"
import json, math, subprocess, sys
x, dir, metric = sys.argv[1:]
many, folder, pattern = (json.load(open(f"{dir}/{n}")) for n in ("many", "folder", "pattern"))
assert many["policies"] == folder["policies"], "a folder is its files"
assert many["replications"] == 3 and pattern["replications"] == 2 and many["sample"] == "recordings"
def value(policy, k):
    run = subprocess.run([x, "run", "--policy", policy, "--trace", f"{dir}/r/t{k + 1}.csv", "--seed", str(many["seeds"][k]), "--json"],
                         capture_output=True, text=True, check=True)
    return json.loads(run.stdout)["metrics"][metric]
v = {p: [value(p, k) for k in range(3)] for p in ("fcfs", "edf")}
t = 4.302652729911275  # Student, 2 degrees of freedom, 97.5 %
for p in v:
    got, mean = many["policies"][p][metric], sum(v[p]) / 3
    half = t * math.sqrt(sum((u - mean) ** 2 for u in v[p]) / 2 / 3)
    assert abs(got["mean"] - mean) < 1e-9 * mean and abs(got["high"] - mean - half) < 1e-6 * mean, (p, got, mean, half)
assert abs(pattern["policies"]["edf"][metric]["mean"] - sum(v["edf"][:2]) / 2) < 1e-9
PY

# A selection takes each recording once, and ends undecided where they are too few. With noise, runs
# of one would differ.
mkdir "$dir/s"
for i in 1 2 3 4 5 6; do
    $x trace gen --workload mixed:duration_s=30 --seed $i -o "$dir/s/t$i.csv" 2>/dev/null || fail "no trace"
done
select="--policy edf --policy vtc --set sim.truth_sigma=0.1 --select 0.99 --indifference 0.001% -q"
# shellcheck disable=SC2086
$x compare $select --trace "$dir/s" >"$dir/selected"
[ $? -eq 1 ] && grep -q "^not decided after 6 replications" "$dir/selected" || fail "a selection takes recordings again"
# shellcheck disable=SC2086
$x compare $select --trace "$dir/r" >"$dir/selected" 2>&1
[ $? -eq 2 ] && grep -q "error: --select: runs a policy on 5 recordings at least, and there are 3; give more, or --workload" "$dir/selected" || fail "a selection from three recordings"

# Redrawn: labelled, the same for all policies (the baseline against itself differs by nothing), and no narrower with more draws.
# shellcheck disable=SC2086
for n in 10 160; do
    $x compare $two --trace "$dir/r/t1.csv" --resample sessions --replications $n --json >"$dir/redrawn$n" 2>/dev/null || fail "redrawn"
done
$x compare --policy edf --policy edf:max_batch=16 --metric $metric --trace "$dir/r/t1.csv" --resample sessions --replications 6 --json >"$dir/same" 2>/dev/null || fail "redrawn for two"
python3 - "$dir" $metric <<'PY' || fail "redrawn sessions"
import json, sys
dir, metric = sys.argv[1:]
few, many, same = (json.load(open(f"{dir}/{n}")) for n in ("redrawn10", "redrawn160", "same"))
assert few["sample"] == "redrawn sessions" and "redrawn from one recording" in few["sample_note"]
width = [d["policies"]["edf"][metric]["high"] - d["policies"]["edf"][metric]["low"] for d in (few, many)]
assert width[1] > width[0] / 3, width  # sixteen times the draws would be a fourth of the width, were they a sample
assert same["policies"]["edf:max_batch=16"][metric]["diff"] == 0
PY
exit $bad
