#!/bin/sh
# The report page comes from a comparison. It is self-contained, has the same bytes again, and is
# refused with a reason when the input is something else. With a Chromium on the PATH it is also
# opened: no message is on the console, and every figure is there.
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
# the temporary folder may lie under a path of 2,400 bytes
TMPDIR=$dir/$(printf './%.0s' $(seq 1200)) "$x" report "$dir/a.json" "$dir/a.json" -o "$dir/again.html" || fail report again
cmp -s "$dir/page.html" "$dir/again.html" || fail "the same input gives another page"
for text in "answers reactive requests soonest" "NPU is extrapolated" "measured" "datasheet" "How to get these numbers again" \
    "--baseline openvino-cb --replications 3" "mixed:reactive_per_min=6" "Written 20" "<input type=search" "prefers-color-scheme: dark"; do
    grep -qF -- "$text" "$dir/page.html" || fail "the page does not say: $text"
done
# Every link of the contents leads somewhere, and every section and figure has one.
grep -o 'href="#[a-z0-9]*"' "$dir/page.html" | sed 's/.*#\(.*\)"/\1/' | sort -u >"$dir/links"
grep -o '<[a-z]* id=[a-z0-9][a-z0-9]*' "$dir/page.html" | sed 's/.*=//' | sort -u >"$dir/ids"
cmp -s "$dir/links" "$dir/ids" || fail "contents and anchors differ: $(diff "$dir/links" "$dir/ids")"
[ "$(wc -l <"$dir/ids")" -ge 9 ] || fail "few anchors: $(cat "$dir/ids")"
# Statements come once: the model's trust, and how to read intervals. The word significant does not
# come.
for text in "NPU is extrapolated" "How to read it" "Every number of core-ultra"; do
    [ "$(grep -oF "$text" "$dir/page.html" | wc -l)" -eq 1 ] || fail "said more than once: $text"
done
grep -q "(significant)" "$dir/page.html" && fail "a difference and its interval say it; significant says it again"
grep -qE '[-+]0(\.0+)? (\[|%)' "$dir/page.html" && fail "a difference of 0 %"
# By a rule only boxes that scroll by themselves may be wider than the page.
[ "$(grep -o '<table' "$dir/page.html" | wc -l)" -eq "$(grep -o '<div class=wide>[^>]*>*<table\|<div class=wide><input[^>]*><table' "$dir/page.html" | wc -l)" ] ||
    fail "a table outside of a box that scrolls"
# A small difference that is shown is called so; an overloaded policy is named in headline and table.
sed 's/"relevance_frac":[^,]*,/"relevance_frac":\t100,/; s/"overloaded":[^,]*,/"overloaded":\t1,/' "$dir/a.json" >"$dir/o.json"
"$x" report "$dir/o.json" --no-figures -o "$dir/o.html" || fail "report of overload"
for text in "OVERLOADED: openvino-cb in 1 of" "<small class=overloaded>overloaded in 1 of" "below the 10000 % that matter"; do
    grep -qF -- "$text" "$dir/o.html" || fail "the page does not say: $text"
done
# The page of make demo, its 26 figures and two comparisons of five policies, must have at most 500
# kB. This one has fewer, of the same kinds.
[ "$(wc -c <"$dir/page.html")" -le 300000 ] || fail "the page has $(wc -c <"$dir/page.html") bytes"
# nothing from elsewhere
sed 's/src="data:[^"]*"//g' "$dir/page.html" >"$dir/bare.html"
grep -qE 'https?://|src=|<link|@import|url\(' "$dir/bare.html" && fail "the page refers to something outside"
grep -qE "(href|src)='[^%]" "$dir/page.html" && fail "a figure refers to something outside"
[ "$(grep -o '<svg' "$dir/page.html" | wc -l)" -eq "$(grep -o '</svg>' "$dir/page.html" | wc -l)" ] || fail "figures do not close"
[ "$(grep -o '<svg' "$dir/page.html" | wc -l)" -ge 6 ] || fail "figures are missing"

"$x" compare --soc snapdragon-8gen2 --llm qwen2.5-1.5b --policy sd-npu --policy sd-npu:system=npu --replications 2 \
    --workload summary:n=5 --json --quiet >"$dir/sd.json" && "$x" report "$dir/sd.json" -o "$dir/sd.html" || fail "systems of sd.npu"
grep -q "xpusim plot sd " "$dir/sd.html" || fail "systems of sd.npu without their figure"
grep -q "xpusim plot sd " "$dir/page.html" && fail "a figure of systems that were not compared"

cat >"$dir/d.json" <<EOF
{"about": {"kind": "drive"}, "trace": "t.csv", "clock": "wall", "engines": "npu = ggml", "repeats": 2, "errors": [{"policy": "fcfs", "soc": "my-soc",
  "mape": {"ttft_s": 0.125, "tpot_s": null, "e2e_s": 0.5}, "mape_at_speed": {"e2e_s": 0.03},
  "real_mape": {"ttft_s": 0.25, "tpot_s": 0.1, "e2e_s": 0.1},
  "foreign_frac": 0.66, "disturbed_runs": 1}, {"policy": "edf", "soc": "my-soc", "foreign_frac": 0.07, "disturbed_runs": 0}], "means": [{"class": "reactive", "policy": "fcfs", "e2e_s": {"real": 1, "simulated": 1.1}},
  {"class": "proactive", "policy": "fcfs", "e2e_s": {"real": 2, "simulated": 1.9}}], "order": [{"class": "reactive",
  "metric": "e2e_s", "soc": "my-soc", "tau": 0.75, "low": 0.5, "high": 1, "pairs": 3, "tied": 1}], "drive": [{"policy": "fcfs",
  "requests": [{"class": "reactive", "repeat": 0, "real_ttft_s": 0.5, "sim_ttft_s": 0.6, "real_e2e_s": 1, "sim_e2e_s": 1.1},
  {"class": "proactive", "repeat": 0, "real_ttft_s": 1.5, "sim_ttft_s": 1.4, "real_e2e_s": 2, "sim_e2e_s": 1.9}]}]}
EOF
"$x" report "$dir/d.json" -o "$dir/d.html" || fail "real runs"
for text in "Real runs against simulated ones" ">12.5 %<" ">50 %<" ">3 %<" ">66 % (disturbed)" ">0.75<" "xpusim plot drive"; do
    grep -qF -- "$text" "$dir/d.html" || fail "the section of real runs does not say: $text"
done
grep -q ">7 %$" "$dir/d.html" || fail "a run that nothing disturbed is not told so"

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
printf 'fingerprint,a\n0,1\n' >"$dir/sweep.csv"
refuse "xpusim plot" "$dir/sweep.csv" -o "$dir/none.html"
refuse "not after" "$dir/a.json" -o "$dir/none.html" --from 5 --to 4
test ! -e "$dir/none.html" || fail "a refused report wrote a file"

browser=$(command -v chromium || command -v chromium-browser || command -v google-chrome || true)
if [ -z "$browser" ]; then
    echo "skipped: the page was not opened, there is no chromium"
else
    open_page() { # file, into $dir/dom
        timeout 300 "$browser" --headless=new --no-sandbox --disable-gpu --user-data-dir="$dir/profile" \
            --enable-logging=stderr --dump-dom "file://$1" >"$dir/dom" 2>"$dir/log"
    }
    open_page "$dir/page.html"
    grep -q "CONSOLE" "$dir/log" && fail "the browser's console: $(grep CONSOLE "$dir/log" | head -n 1)"
    [ "$(grep -oE '(<|&lt;)svg' "$dir/dom" | wc -l)" -ge 6 ] || fail "the browser shows no figures"
    grep -q 'class="by"' "$dir/dom" || fail "tables cannot be sorted"
    # Layout is tested: the page is as wide as the phone, the tablet, the desk. The test searches by
    # script for the expected elements. Frames of these widths are in one window, and each reports
    # its own findings.
    sed "s#</html>#<script>document.querySelectorAll('details').forEach(function (d) { d.open = true; });\
var html = document.documentElement, wider = Math.max(html.scrollWidth, document.body.scrollWidth) - html.clientWidth;\
var s = document.querySelector('input[type=search]'); s.value = 'reactive P90 ttft'; s.dispatchEvent(new Event('input'));\
parent.postMessage([window.innerWidth, wider].concat(Array.from(s.parentNode.querySelectorAll('tbody tr')).filter(\
function (r) { return !r.hidden; }).map(function (r) { return r.cells[0].textContent; })).join(' '), '*');</script></html>#" "$dir/page.html" >"$dir/frame.html"
    {
        echo "<!doctype html><script>onmessage = function (m) { document.title += ';' + m.data; };</script>"
        for width in 390 800 1400; do echo "<iframe src=frame.html width=$width height=900 style='border: 0'></iframe>"; done
        echo "</html>"
    } >"$dir/frames.html"
    open_page "$dir/frames.html"
    sed -n 's/.*<title>\(.*\)<.title>.*/\1/p' "$dir/dom" | tr ';' '\n' >"$dir/frames"
    for width in 390 800 1400; do
        grep -q "^$width 0 " "$dir/frames" || fail "$width pixels: the page is wider by those behind the width: $(cat "$dir/frames")"
        grep -q "^$width -*[0-9]* reactive.ttft_s.p90 " "$dir/frames" || fail "search finds: $(cat "$dir/frames")"
    done
fi
# Without reactive requests their latency has no number: the figure of it is left out, and asked for by name it is refused.
"$x" compare --policy fcfs --policy edf --replications 2 --workload mixed:reactive_per_min=0,duration_s=120 --json --quiet >"$dir/b.json" || fail compare
"$x" report "$dir/b.json" -o "$dir/b.html" || fail "report without reactive requests"
grep -q "No reactive request finished" "$dir/b.html" && grep -q "xpusim plot breakdown" "$dir/b.html" && ! grep -q "xpusim plot pareto" "$dir/b.html" ||
    fail "figures of a page without reactive requests"
"$x" plot pareto "$dir/b.json" -o "$dir" 2>"$dir/out"
[ $? -eq 2 ] && grep -q "b.json: reactive.e2e_s.mean has no number" "$dir/out" || fail "plot without numbers: $(cat "$dir/out")"
exit $status
