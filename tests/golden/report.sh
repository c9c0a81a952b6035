#!/bin/sh
# The report page: from a comparison, self-contained, the same bytes again, and refused with a reason
# when the input is something else. With a Chromium on the PATH it is also opened: no message on the
# console, every figure there.
set -u
cd "$(dirname "$0")/../.." || exit 2
x=${BUILD:-build}/xpusim
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
status=0

fail() {
    echo "FAILED: $*"
    status=1
}
refuse() { # text, arguments...
    want=$1
    shift
    "$x" report "$@" >"$dir/out" 2>&1
    got=$?
    if [ $got -ne 2 ] || ! grep -qF -- "$want" "$dir/out"; then
        fail "(exit $got, wanted 2 and \"$want\"): report $*"
    fi
}

"$x" compare --policy openvino-cb --policy agent-xpu-v2 --policy edf --baseline openvino-cb --replications 3 \
    --workload mixed:reactive_per_min=6,proactive_per_min=12,duration_s=120 --json --quiet >"$dir/a.json" || fail compare
"$x" report "$dir/a.json" "$dir/a.json" -o "$dir/page.html" || fail report
"$x" report "$dir/a.json" "$dir/a.json" -o "$dir/again.html" || fail report again
cmp -s "$dir/page.html" "$dir/again.html" || fail "the same input gives another page"
for text in "answers reactive requests soonest" "NPU is extrapolated" "measured" "How to get these numbers again" \
    "--replications 3 --seed 1" "mixed:reactive_per_min=6"; do
    grep -qF -- "$text" "$dir/page.html" || fail "the page does not say: $text"
done
# nothing from elsewhere
sed 's/src="data:[^"]*"//g' "$dir/page.html" >"$dir/bare.html"
grep -qE 'https?://|src=|<link|@import|url\(' "$dir/bare.html" && fail "the page refers to something outside"
grep -qE '(href|src)=%22[^%]' "$dir/page.html" && fail "a figure refers to something outside"
[ "$(grep -c '<svg' "$dir/page.html")" -eq "$(grep -c '</svg>' "$dir/page.html")" ] || fail "figures do not close"
[ "$(grep -c '<svg' "$dir/page.html")" -ge 12 ] || fail "figures are missing"

"$x" compare --soc snapdragon-8gen2 --llm qwen2.5-1.5b --policy sd-npu --policy sd-npu:system=npu --replications 2 \
    --workload summary:n=5 --json --quiet >"$dir/sd.json" && "$x" report "$dir/sd.json" -o "$dir/sd.html" || fail "systems of sd.npu"
grep -q "xpusim plot sd " "$dir/sd.html" || fail "systems of sd.npu without their figure"
grep -q "xpusim plot sd " "$dir/page.html" && fail "a figure of systems that were not compared"

cat >"$dir/d.json" <<EOF
{"trace": "t.csv", "clock": "wall", "engines": "npu = ggml", "repeats": 2, "errors": [{"policy": "fcfs", "soc": "my-soc",
  "mape": {"ttft_s": 0.125, "tpot_s": null, "e2e_s": 0.5}, "mape_at_speed": {"e2e_s": 0.03},
  "real_mape": {"ttft_s": 0.25, "tpot_s": 0.1, "e2e_s": 0.1},
  "foreign_frac": 0.66, "disturbed_runs": 1}], "means": [{"class": "reactive", "policy": "fcfs", "e2e_s": {"real": 1, "simulated": 1.1}},
  {"class": "proactive", "policy": "fcfs", "e2e_s": {"real": 2, "simulated": 1.9}}], "order": [{"class": "reactive",
  "metric": "e2e_s", "soc": "my-soc", "tau": 0.75, "low": 0.5, "high": 1, "pairs": 3, "tied": 1}], "drive": [{"policy": "fcfs",
  "requests": [{"class": "reactive", "repeat": 0, "real_ttft_s": 0.5, "sim_ttft_s": 0.6, "real_e2e_s": 1, "sim_e2e_s": 1.1},
  {"class": "proactive", "repeat": 0, "real_ttft_s": 1.5, "sim_ttft_s": 1.4, "real_e2e_s": 2, "sim_e2e_s": 1.9}]}]}
EOF
"$x" report "$dir/d.json" -o "$dir/d.html" || fail "real runs"
for text in "Real runs against simulated ones" ">12.5 %<" ">50 %<" ">3 %<" ">66 % (disturbed)" ">0.75<" "xpusim plot drive"; do
    grep -qF -- "$text" "$dir/d.html" || fail "the section of real runs does not say: $text"
done

echo '{"policies":{}}' >"$dir/empty.json"
echo '{"a":' >"$dir/broken.json"
"$x" run --policy fcfs --workload mixed:duration_s=30 --json --quiet >"$dir/run.json"
refuse "policies" "$dir/empty.json" -o "$dir/none.html"
refuse "broken.json" "$dir/broken.json" -o "$dir/none.html"
refuse "compare --json" "$dir/run.json" -o "$dir/none.html"
for half in soc llm; do # half a configuration is none
    sed "s/\"$half\":/\"other\":/" "$dir/a.json" >"$dir/half.json"
    refuse "config: missing" "$dir/half.json" -o "$dir/none.html"
done
refuse "nonesuch.json" nonesuch.json -o "$dir/none.html"
refuse "no/such/folder" "$dir/a.json" -o "$dir/no/such/folder/x.html"
refuse "-o FILE.html" "$dir/a.json"
mkdir "$dir/nothing"
env PATH="$dir/nothing" "$x" report "$dir/a.json" -o "$dir/none.html" 2>"$dir/out"
[ $? -eq 2 ] && grep -q "gnuplot is not installed" "$dir/out" || fail "no gnuplot: $(cat "$dir/out")"
env PATH="$dir/nothing" "$x" report "$dir/a.json" --no-figures -o "$dir/plain.html" || fail "--no-figures"
grep -q '<img' "$dir/plain.html" && fail "--no-figures has figures"
[ "$(grep -c '<img' "$dir/page.html")" -ge 4 ] || fail "gnuplot's figures are missing"
printf 'fingerprint,a\n0,1\n' >"$dir/sweep.csv"
refuse "xpusim plot" "$dir/sweep.csv" -o "$dir/none.html"
refuse "not after" "$dir/a.json" -o "$dir/none.html" --from 5 --to 4
test ! -e "$dir/none.html" || fail "a refused report wrote a file"

browser=$(command -v chromium || command -v chromium-browser || command -v google-chrome || true)
if [ -z "$browser" ]; then
    echo "skipped: the page was not opened, there is no chromium"
else
    timeout 60 "$browser" --headless=new --no-sandbox --disable-gpu --user-data-dir="$dir/profile" \
        --enable-logging=stderr --dump-dom "file://$dir/page.html" >"$dir/dom" 2>"$dir/log"
    grep -q "CONSOLE" "$dir/log" && fail "the browser's console: $(grep CONSOLE "$dir/log" | head -n 1)"
    [ "$(grep -o '<svg' "$dir/dom" | wc -l)" -ge 12 ] || fail "the browser shows no figures"
    grep -q 'class="by"' "$dir/dom" || fail "tables cannot be sorted"
fi
exit $status
