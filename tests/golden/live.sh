#!/bin/sh
# The live page is written by view and report --live. It is self-contained, has the same bytes
# again, and is refused with a reason. In Chromium it is used as a person does, and every number is
# compared with the commands' own (tests/helpers/live_check.py).
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
refuse() { # text, arguments...
    want=$1
    shift
    "$x" "$@" >"$dir/out" 2>&1
    got=$?
    if [ $got -ne 2 ] || ! grep -qF -- "$want" "$dir/out"; then
        fail "(exit $got, wanted 2 and \"$want\"): $*: $(head -c 300 "$dir/out")"
    fi
}
echo "--workload mixed:reactive_per_min=3,proactive_per_min=6,duration_s=300" >"$dir/work"
work=$(cat "$dir/work")
three="--policy openvino-cb --policy fcfs --policy agent-xpu-v2"
# shellcheck disable=SC2086
{
    "$x" view $three $work --json >"$dir/view.json" || fail "view --json"
    "$x" view $three ${work%=*}=900 -o "$dir/v.html" || fail "view" # a large page, for its size: Chromium opens the others
    "$x" compare $three --baseline openvino-cb $work --replications 3 --json --quiet >"$dir/c.json" || fail compare
    "$x" compare $three --baseline openvino-cb $work --replications 3 --load 0.5,1.1 --json --quiet >"$dir/load.json" || fail "compare --load"
}
"$x" view --policy edf --policy fcfs --workload leader-subagents --llm leader=llama-3.1-8b --llm subagent=llama-3.2-3b -o "$dir/agents.html" || fail "view of two models"
# shellcheck disable=SC2086
"$x" view --policy edf --policy agent-xpu-v2 --workload coding-agent --soc core-ultra-7-258v --llm qwen3-4b:bits=4 -o "$dir/far.html" || fail "view outside the calibrated range"
"$x" view --policy agent-xpu-v2:b_rf=4,elastic=off,guard=true --policy agent-xpu-v2:b_rf=4,elastic=off,shortest=all $work -o "$dir/names.html" || fail "view of long names"
"$x" view --policy fcfs $work --from 8.27 --to 8.37 -o "$dir/kernels.html" || fail "view with kernels"
# shellcheck disable=SC2086
if [ -f "${BUILD:-build}/xpusim.wasm" ]; then
    "$x" view --policy fcfs --policy agent-xpu-v2 $work --recompute -o "$dir/recompute.html" || fail "view --recompute"
    "$x" view --policy fcfs --policy edf $work --machine "$PWD/traces/machine/laptop.json" --recompute -o "$dir/machine.html" || fail "view --recompute with a shipped file by its whole path"
    "$x" view --policy fcfs --policy edf --workload mixed:arrival=closed,duration_s=60 --recompute -o "$dir/closed.html" || fail "view --recompute of closed loops"
    "$x" view --policy fcfs --policy agent-xpu-v2 $work --recompute --json >"$dir/recompute.json" || fail "view --recompute --json"
    python3 tests/helpers/schema.py docs/schemas/view.json "$dir/recompute.json" || fail "recompute.json is not as its schema says"
else
    echo "skipped: no page computed: make wasm has not built the simulator for pages"
    refuse "make wasm" view --policy fcfs --policy edf $work --recompute -o "$dir/none.html"
fi
for page in live again; do
    "$x" report --live --no-figures "$dir/view.json" "$dir/c.json" "$dir/load.json" -o "$dir/$page.html" || fail "report --live"
done
if command -v gnuplot >/dev/null; then
    "$x" report "$dir/c.json" -o "$dir/figures.html" || fail "a report with figures"
fi
cmp -s "$dir/live.html" "$dir/again.html" || fail "the same files give another page"
for page in v live; do
    [ "$(wc -c <"$dir/$page.html")" -le 1000000 ] || fail "$page.html has $(wc -c <"$dir/$page.html") bytes"
done
grep -q "openvino-cb, fcfs, agent-xpu-v2 on llama-3.2-3b on core-ultra-5-125h" "$dir/v.html" || fail "the title does not say what runs these are"
python3 tests/helpers/schema.py docs/schemas/view.json "$dir/view.json" || fail "view.json is not as its schema says"

refuse "view needs" view
refuse "does not go with --trace" view --policy fcfs --recompute -o "$dir/none.html"
refuse "-o FILE.html" view --policy fcfs
refuse "--json goes with --policy" view --json "$dir/view.json"
refuse "not after" view --policy fcfs --from 3 --to 2 -o "$dir/none.html"
refuse "nonesuch" view --policy nonesuch -o "$dir/none.html"
refuse "add --live" report "$dir/view.json" --no-figures -o "$dir/none.html"
echo '{"about": {"kind": "view"}}' >"$dir/empty.json"
refuse "runs: missing" view "$dir/empty.json" -o "$dir/none.html"
refuse "no/such" view --policy fcfs -o "$dir/no/such/page.html"
[ ! -e "$dir/none.html" ] || fail "a refused page is there"

browser=$(command -v chromium || command -v chromium-browser || command -v google-chrome || true)
if [ -z "$browser" ]; then
    echo "skipped: the live page was not used, there is no chromium"
    python3 tests/helpers/contrast.py || bad=1
else
    timeout 500 python3 tests/helpers/live_check.py "$browser" "$x" "$dir" || bad=1
    timeout 200 python3 tests/helpers/contrast.py "$browser" "$dir" "$dir/live.html#a=0&b=2&sel=9" ${WHOLE:+"$dir/far.html"} || bad=1
fi
exit $bad
