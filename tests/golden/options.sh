#!/bin/sh
# Every option of every command is in a page or in a test; and those that no other script uses do what they say.
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
commands=$("$x" help | sed -n 's/^  \([a-z-]*\) .*/\1/p')
git ls-files '*.md' 'tests/*' 'docs/*' Makefile 'experiments/*.sh' 2>/dev/null | xargs grep -ohIE -- '--[a-z][a-z0-9-]*' | sort -u >"$dir/known"
if [ -s "$dir/known" ]; then # a tree without git has no list of its files
    for c in $commands; do
        "$x" help "$c" | sed -nE 's/^  (--[a-z0-9-]*[a-z0-9])( .*)?$/\1/p'
    done | sort -u | comm -23 - "$dir/known" >"$dir/unknown"
    [ -s "$dir/unknown" ] && fail "in no page and no test: $(tr '\n' ' ' <"$dir/unknown")"
fi

# sweep --yes: above 100,000 runs
echo '{"base": {"policy": "fcfs", "workload": "w1:n=2"}, "replications": 100001}' >"$dir/many.json"
"$x" sweep "$dir/many.json" -o "$dir/s.db" --dry-run >"$dir/out" 2>&1
[ $? = 2 ] && grep -q -- '--yes' "$dir/out" || fail "100001 runs without --yes: $(cat "$dir/out")"
"$x" sweep "$dir/many.json" -o "$dir/s.db" --dry-run --yes >"$dir/out" 2>&1 && grep -q '100001 runs' "$dir/out" || fail "--yes: $(cat "$dir/out")"
# run --timeline-detail: a prompt's launch is many kernels
for detail in launches kernels; do
    "$x" run --policy fcfs --workload w1:n=2 --soc core-ultra-5-125h --timeline "$dir/$detail.json" --timeline-detail $detail -q >/dev/null || fail "$detail"
done
[ "$(wc -c <"$dir/kernels.json")" -gt $((2 * $(wc -c <"$dir/launches.json"))) ] || fail "--timeline-detail kernels has no more than launches"
# graphs --keep-old: another block of memory, and no total that is longer; --nodes 1: no optimum
graphs="graphs --p 10,10,10,10 --d 11,11,11,11 --s 20,20,20,20 --chunks 3 --csv"
# shellcheck disable=SC2086
{
    "$x" $graphs >"$dir/freed"
    "$x" $graphs --keep-old >"$dir/kept"
    "$x" $graphs --nodes 1 >"$dir/short"
}
grep '^strategies.exact.total,124$' "$dir/freed" >/dev/null || fail "graphs: $(cat "$dir/freed")"
grep '^strategies.left-shifted.total,122$' "$dir/kept" >/dev/null || fail "graphs --keep-old: $(cat "$dir/kept")"
grep '^strategies.exact.finished,true$' "$dir/short" >/dev/null && fail "graphs --nodes 1 finishes: $(grep exact "$dir/short")"
# validate --rows: a line per row beside the summary
"$x" validate --points reference --soc core-ultra-9-185h >"$dir/summary"
"$x" validate --points reference --soc core-ultra-9-185h --rows >"$dir/rows"
[ "$(wc -l <"$dir/rows")" -gt "$(wc -l <"$dir/summary")" ] || fail "validate --rows: $(wc -l <"$dir/rows") lines"
exit $bad
