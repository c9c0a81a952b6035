#!/bin/sh
# The interval of a mean is the same in the table, in JSON and in the figure, and JSON says which interval it is.
set -u
cd "$(dirname "$0")/../.." || exit 2
command -v python3 >/dev/null 2>&1 || { echo "skipped: python3 is not installed"; exit 0; }
x=$(cd "${BUILD:-build}" && pwd)/xpusim
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
metric=reactive.ttft_s.p95
set -- compare --policy fcfs --policy edf --policy agent-xpu-v2 --metric $metric -q
for n in 3 10 20; do
    "$x" "$@" --replications $n >"$dir/$n.txt" && "$x" "$@" --replications $n --json >"$dir/$n.json" || exit 1
    "$x" plot headline --metric $metric -o "$dir/$n" "$dir/$n.json" >/dev/null || exit 1
done
python3 - "$dir" $metric <<'END'
import json, re, sys
folder, metric = sys.argv[1:]
words = {"student": "", "bootstrap-t": "(bootstrap-t)", "student-skewed": "(skewed: 85 %)"}
seen = set()
for n in (3, 10, 20):
    text = open(f"{folder}/{n}.txt").read()
    figure = open(f"{folder}/{n}/headline.tsv").read()
    for policy, metrics in json.load(open(f"{folder}/{n}.json"))["policies"].items():
        m = metrics[metric]
        seen.add(m["method"])
        shown = re.search(rf"^  {policy} +(\S+) \[(\S+), (\S+)\] ?(\(boot\S*|\(skewed: 85 %\))?", text, re.M)
        for word, value in zip(shown.groups()[:3], (m["mean"], m["low"], m["high"])):
            digits = len(word.partition(".")[2])
            assert abs(float(word) - value) <= 0.5000001 * 10.0**-digits, (n, policy, word, value)
        assert (shown[4] or "") == words[m["method"]], (n, policy, shown[4], m["method"])
        assert n != 20 or m["method"] == "student"
        for value in (m["low"], m["high"]):
            drawn = [float(w) for w in re.findall(r"-?\d[\d.]*(?:e[-+]?\d+)?", figure)]
            assert any(abs(d - value) <= 1e-4 * abs(value) for d in drawn), (n, policy, value, figure)
assert {"student", "bootstrap-t"} <= seen, seen
END
