#!/bin/sh
# Any quantile and any share of any distribution is compared with nearest ranks of the run's own
# requests. It is exact and from a sketch, by option and by the name of a metric, in every command
# that takes one.
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
w=mixed:duration_s=1800
$x run --policy edf --workload $w --quantile 97.5 --quantile 12.5 --below 5 --below 20 --requests "$dir/r.csv" --json -q >"$dir/exact" || fail "run"
$x run --policy edf --workload $w --quantile 97.5 --below 5 --below 20 --sketch --json -q >"$dir/sketch" || fail "run --sketch"
python3 - "$dir/r.csv" "$dir/exact" "$dir/sketch" <<'EOF' || fail "a quantile is not the nearest rank"
import csv, json, math, sys
rows = [r for r in csv.DictReader(l for l in open(sys.argv[1]) if not l.startswith("#"))]
exact, sketch = (json.load(open(f))["metrics"] for f in sys.argv[2:])
key = {"reactive": [], "proactive": []}
for r in rows:
    cls = r["class"]
    if r["finish_s"] and r["state"] == "finished":
        key[cls].append(float(r["finish_s"]) - float(r["arrival_s"]))
assert len(key["reactive"]) > 40, rows[0]
for cls, v in key.items():
    v.sort()
    for p in (12.5, 50, 90, 95, 97.5, 99):
        want = v[math.ceil(p / 100 * len(v)) - 1]
        got = exact[f"{cls}.e2e_s.p{p:g}"]
        assert abs(got - want) < 1e-6, (cls, p, got, want)
    for limit in (5, 20):
        want = sum(x <= limit for x in v) / len(v)
        assert abs(exact[f"{cls}.e2e_s.below:{limit}"] - want) < 1e-12, (cls, limit)
        assert abs(sketch[f"{cls}.e2e_s.below:{limit}"] - want) < 0.05, (cls, limit)
    assert abs(sketch[f"{cls}.e2e_s.p97.5"] / exact[f"{cls}.e2e_s.p97.5"] - 1) < 0.01
assert "reactive.e2e_s.p12.5" not in sketch
EOF
$x compare --policy edf --policy fcfs --workload $w --replications 3 --metric reactive.e2e_s.p97.5 --json -q >"$dir/c" || fail "compare"
grep -q '"reactive.e2e_s.p97.5"' "$dir/c" || fail "compare has no p97.5"
$x search --policy edf --slo 'reactive.e2e_s.p85<=900' --workload mixed:duration_s=60 --replications 2 --json -q 2>/dev/null | grep -q 'p85' ||
    fail "search"
$x compare --policy edf --policy fcfs --workload $w --replications 3 --metric reactive.ttft_s.below:2 --metric reactive.qoe.mean --json -q >"$dir/c" ||
    fail "compare of a share"
grep -q '"reactive.ttft_s.below:2"' "$dir/c" || fail "compare has no share"
grep -q '"reactive.qoe.mean"' "$dir/c" || fail "compare has no quality of experience"
$x search --policy edf --slo 'reactive.ttft_s.below:20>=0.5' --workload mixed:duration_s=60 --replications 2 --json -q 2>/dev/null | grep -q 'below:20' ||
    fail "search for a share"
# A metric without a value is neither met nor missed, at any rate.
$x search --policy edf --slo 'reactive.slo_attainment_frac>=0.9' --workload mixed:duration_s=60 --replications 2 -q 2>&1 |
    grep -q 'slo_attainment_frac has no value in any of 2 runs: no request has a target (--ttft-slo, --tpot-slo)' ||
    fail "search for a metric without a value"
# Where nothing limits the power, no run has this one.
$x search --policy edf --slo 'throttle.lost_frac<=0.1' --workload mixed:duration_s=60 --replications 2 -q 2>&1 |
    grep -q 'throttle.lost_frac has no value in any of 2 runs' || fail "search for a metric that no run has"
# Passes that the engine repeats at once give what each of them by itself does.
for k in true false; do
    # shellcheck disable=SC2086
    $x run --policy vllm-v1 --workload w1:n=300 --qoe 0.5,30 --below 0.5 --set sim.collapse=$k --json -q | grep -E '"(reactive|proactive).(qoe|turn_s|tbt_s)[.]' >"$dir/k$k"
done
grep -q 'qoe.mean' "$dir/ktrue" && cmp -s "$dir/ktrue" "$dir/kfalse" || fail "quality of experience of repeated passes"
for p in -1 x 0x1 2s 1e999 "" nan; do
    $x run --policy edf --workload $w --below "$p" >/dev/null 2>"$dir/e"
    [ $? = 2 ] && grep -q "below" "$dir/e" || fail "--below $p is taken"
done
for p in 1 1, 1,0 -1,4 1,4,8 nan,4 1,nan x; do
    $x run --policy edf --workload $w --qoe "$p" >/dev/null 2>"$dir/e"
    [ $? = 2 ] && grep -q "qoe" "$dir/e" || fail "--qoe $p is taken"
done
for p in 0 100 101 x -5 9,5 ""; do
    $x run --policy edf --workload $w --quantile "$p" >/dev/null 2>"$dir/e"
    [ $? = 2 ] && grep -q "quantile" "$dir/e" || fail "--quantile $p is taken"
done
exit "$bad"
