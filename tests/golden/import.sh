#!/bin/sh
# `trace import`: one sample of every format is recognised, through a file, a pipe and gzip alike, and what comes out
# is a trace that runs. A file cut short inside gzip is an error.
set -u
cd "$(dirname "$0")/../.." || exit 2
x=${BUILD:-build}/xpusim
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
bad=0
fail() { echo "FAILED: $*"; bad=1; }

for f in aiperf bailian genai-perf otel sharegpt vllm import; do
    sample=tests/fuzz/corpus/$f/sample
    [ "$f" = import ] && name=burstgpt || name=$f
    "$x" trace import "$sample" --rate-per-min 6 -o "$dir/a.csv" 2>"$dir/note" || fail "$f: $(cat "$dir/note")"
    grep -q "read as $name: " "$dir/note" || fail "$f: $(cat "$dir/note")"
    "$x" trace import - --rate-per-min 6 <"$sample" >"$dir/b.csv" 2>/dev/null
    cmp -s "$dir/a.csv" "$dir/b.csv" || fail "$f: standard input reads otherwise"
    gzip -c "$sample" >"$dir/c.gz"
    "$x" trace import "$dir/c.gz" --rate-per-min 6 >"$dir/b.csv" 2>/dev/null
    cmp -s "$dir/a.csv" "$dir/b.csv" || fail "$f: gzip reads otherwise"
    "$x" run --policy fcfs --trace "$dir/a.csv" -q >/dev/null 2>"$dir/note" || fail "$f does not run: $(cat "$dir/note")"
    other=$([ "$f" = otel ] && echo vllm || echo otel)
    "$x" trace import --format $other "$sample" -o "$dir/never.csv" 2>"$dir/note"
    [ $? = 2 ] && [ ! -e "$dir/never.csv" ] && grep -q "not $other: it begins as $name does" "$dir/note" ||
        fail "$f as $other: $(cat "$dir/note")"
done
gzip -c "$dir/a.csv" >"$dir/a.csv.gz"
"$x" run --policy fcfs --trace "$dir/a.csv" --json >"$dir/1.json" && "$x" run --policy fcfs --trace "$dir/a.csv.gz" --json |
    grep -v '"workload"' >"$dir/2.json" && grep -v '"workload"' "$dir/1.json" | cmp -s - "$dir/2.json" || fail "a packed trace runs otherwise"
head -c 60 "$dir/c.gz" >"$dir/cut.gz"
"$x" trace import "$dir/cut.gz" -o "$dir/never.csv" 2>"$dir/note"
[ $? = 2 ] && [ ! -e "$dir/never.csv" ] || fail "a file cut short: $(cat "$dir/note")"
exit $bad
