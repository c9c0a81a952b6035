#!/bin/sh
# Every figure of the papers is made at a small size, drawn, and says all its values. The list and
# docs/figures.md have them all.
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
"$x" figure --json >"$dir/list.json" || fail "the list"
for f in experiments/figures/*-*.json; do
    name=$(basename "$f" .json)
    # Two take a second each and have the form of others, so they run with WHOLE=yes only.
    case $name in agent-xpu-v1-6 | agent-xpu-v2-8) [ -n "${WHOLE:-}" ] || continue ;; esac
    small=""
    grep -q '"duration": 900' "$f" && small="--put duration=60 --seed 4" # its first minute has requests at every rate
    grep -q '"n": 10' "$f" && small="--put n=2"
    # shellcheck disable=SC2086
    "$x" figure "${name%-*}" "${name##*-}" $small --replications 1 -q --json -o "$dir" >"$dir/$name.json" 2>"$dir/said" ||
        fail "$name: $(head -3 "$dir/said")"
done
"$x" figure agent-xpu-v2 9 --put duration=60 --replications 1 -q --json --no-picture -o "$dir/none" >"$dir/values.json" 2>"$dir/said" &&
    [ ! -e "$dir/none" ] && grep -q '"points"' "$dir/values.json" || fail "no picture: $(cat "$dir/said")"
# A wrong file says what is wrong, and nothing is left of it.
sed 's/"draw": "bars"/"draw": "pie"/' experiments/figures/agent-xpu-v2-9.json >"$dir/wrong.json"
"$x" figure "$dir/wrong.json" -o "$dir/none" >"$dir/said" 2>&1
[ $? = 2 ] && grep -q 'wrong.json: draw: ' "$dir/said" && [ ! -e "$dir/none" ] || fail "wrong file: $(cat "$dir/said")"
"$x" figure agent-xpu-v2 2 --no-picture -o "$dir/none" >"$dir/said" 2>&1 && grep -q 'under the roofs' "$dir/said" && [ ! -e "$dir/none" ] ||
    fail "a schedule without its picture: $(cat "$dir/said")"
# Its values: points as `list kernels` has them; six blocks of 10 in two chunks, and then six loads of 20.
"$x" list kernels --csv -q >"$dir/kernels.csv"
"$x" figure agent-xpu-v2 2 --no-picture --csv -q >"$dir/values.csv"
python3 - "$dir" <<'END' || fail "values of the roofline"
import csv, sys
read = lambda name: list(csv.DictReader(l for l in open(f"{sys.argv[1]}/{name}") if l[0] != "#"))
key = lambda r: (r["device"], r["op"], r["work"])
want = {key(r): (float(r["flop_per_byte"]), float(r["flop_per_s"])) for r in read("kernels.csv") if r.get("flop_per_s")}
got = {key(r): (float(r["flop_per_byte"]), 1e12 * float(r["tflop_per_s"])) for r in read("values.csv")}
near = lambda a, b: all(abs(x - y) <= 1e-9 * abs(y) for x, y in zip(a, b))
sys.exit(0 if len(want) > 20 and want.keys() == got.keys() and all(near(got[k], want[k]) for k in want) else f"{len(want)} and {len(got)} kernels")
END
"$x" figure sd-npu 8 --no-picture --csv -q >"$dir/values.csv"
grep -q '^sync,compute with G1,0,120,120,12$' "$dir/values.csv" && grep -q '^sync,load G2,120,240,120,6$' "$dir/values.csv" ||
    fail "values of a schedule: $(cat "$dir/values.csv")"
"$x" figure agent-xpu-v2 99 >"$dir/said" 2>&1
[ $? = 2 ] && grep -q 'no such figure; `xpusim figure` lists them' "$dir/said" || fail "unknown: $(cat "$dir/said")"
"$x" figure agent-xpu-v2 9 --put durations=60 >"$dir/said" 2>&1
[ $? = 2 ] && grep -q 'put durations=60: must be KEY=VALUE with a key of' "$dir/said" || fail "put: $(cat "$dir/said")"
python3 - "$dir" <<'END' || bad=1
import glob, json, math, os, re, sys
folder = sys.argv[1]
whole = os.environ.get("WHOLE")
specs = {os.path.basename(f)[:-5]: json.load(open(f)) for f in glob.glob("experiments/figures/*-*.json")}
listed = json.load(open(f"{folder}/list.json"))
assert {f"{r['paper']}-{r['number']}" for r in listed["figures"]} == set(specs), "the list has other figures than there are files"
page = open("docs/figures.md", encoding="utf-8").read()
for r in listed["cannot"]:
    assert r["why"] in page, f"docs/figures.md: make figures ({r})"
for name, s in specs.items():
    assert s["says"] in page, f"docs/figures.md: make figures ({name})"
    if not whole and name in ("agent-xpu-v1-6", "agent-xpu-v2-8"):
        continue
    if s.get("draw") == "table":
        assert not os.path.exists(f"{folder}/{name}.svg"), f"{name}: a table has a picture"
    else:
        svg = open(f"{folder}/{name}.svg", encoding="utf-8").read()
        assert os.path.exists(f"docs/figures/{name}.svg"), f"docs/figures/{name}.svg: make figures"
        assert s["title"] in svg, f"{name}: the picture has no title"
        if any(m["from"] == "text" for m in s.get("published", [])):
            assert "published (text)" in svg or "published range (text)" in svg, f"{name}: no legend of published values"
    if "commands" in s:
        continue
    d = json.load(open(f"{folder}/{name}.json"))
    # At one minute of load some classes have no request; most points have a value.
    defined = [p for p in d["points"] if p["value"] is not None]
    assert len(defined) >= len(d["points"]) / 2, f"{name}: {len(defined)} of {len(d['points'])} points have a value"
    assert all(p["n"] == 1 for p in defined), f"{name}: not one trace"
    said = s.get("published", [])
    assert len(d.get("published", [])) >= len(said), f"{name}: a published value is missing"
    for m in said:  # a plain value comes out as it was written
        if "as" in m or "crossing" in m:
            continue
        low, high = m.get("value", m.get("low")), m.get("value", m.get("high"))
        assert any((r["drawn_low"], r["drawn_high"]) == (low, high) for r in d["published"]), (name, m)
END
exit $bad
