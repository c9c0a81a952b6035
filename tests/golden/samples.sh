#!/bin/sh
# Above 100,000 requests quantiles come from sketches by themselves, and every form of output says so; --exact keeps the
# samples, --sketch asks for sketches below. Counts, sums, least and greatest values do not depend on it.
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
run() { # requests, file, options...
    n=$1
    file=$2
    shift 2
    "$x" run --policy openvino-cb:max_num_seqs=32 --soc w1-reference --workload "w1:n=$n" "$@" >"$dir/$file" || fail "$n $*"
}
run 100000 below --json
run 100001 above --json
run 100001 exact --json --exact
run 1000 text --sketch
run 1000 asked --json --sketch
python3 - "$dir" <<'END' || bad=1
import json, re, sys
below, above, exact, asked = (json.load(open("%s/%s" % (sys.argv[1], f))) for f in ("below", "above", "exact", "asked"))
said = "quantiles are from a sketch, within 0.5 % (--exact keeps every sample)"
for d, sketch in ((below, False), (above, True), (exact, False), (asked, True)):
    assert d["sketch"] is sketch and (said in d["warnings"]) is sketch, (d["sketch"], d["warnings"])
for name, value in exact["metrics"].items():
    got = above["metrics"][name]
    if re.fullmatch(r"p[0-9.]+", name.rsplit(".", 1)[-1]):
        assert got == value or abs(got / value - 1) <= 0.005, (name, got, value)
    else:
        assert got == value or abs(got / value - 1) <= 1e-12, (name, got, value)
END
grep -q 'quantiles are from a sketch' "$dir/text" || fail "text does not say it"
"$x" run --policy fcfs --sketch --exact >"$dir/out" 2>&1
[ $? = 2 ] && grep -q -- '--sketch and --exact: one of them' "$dir/out" || fail "both: $(cat "$dir/out")"
"$x" compare --policy openvino-cb:max_num_seqs=32 --soc w1-reference --workload w1:n=100001 --replications 1 \
    --metric all.e2e_s.p90 --json -q >"$dir/out" || fail "compare"
grep -q 'quantiles are from a sketch' "$dir/out" || fail "compare does not say it"
exit $bad
