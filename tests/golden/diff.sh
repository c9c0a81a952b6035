#!/bin/sh
# diff and bisect are tested with a recording. Equal runs pass, and a changed parameter is found
# with its state. The shrunk trace still shows it, and two logs or another binary serve as well.
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
load="--workload mixed:reactive_per_min=6,proactive_per_min=12,duration_s=60 --seed 3"
pair="--policy agent-xpu-v2 --b-policy agent-xpu-v2:b_rf=1"

# shellcheck disable=SC2086
"$x" diff --policy agent-xpu-v2 $load | grep -q '^no difference in [0-9]* decisions$' || fail "equal runs differ"
# shellcheck disable=SC2086
XPUSIM_DATA_DIR=$PWD "$x" diff --policy agent-xpu-v2 $load --against "$x" >/dev/null || fail "a binary differs from itself"
# shellcheck disable=SC2086
XPUSIM_DATA_DIR=$PWD TMPDIR=$dir/none "$x" diff --policy agent-xpu-v2 $load --against "$x" >"$dir/none.out"
grep -q "no temporary folder (TMPDIR): No such file" "$dir/none.out" || fail "no folder for the other binary's files: $(cat "$dir/none.out")"
# shellcheck disable=SC2086
"$x" diff $pair $load >"$dir/out"
[ $? -eq 1 ] || fail "a difference is not exit 1"
# shellcheck disable=SC2086
"$x" bisect $pair $load -o "$dir/small.csv" >>"$dir/out" || fail "bisect"
"$x" diff $pair --trace "$dir/small.csv" --seed 3 >>"$dir/out" && fail "the shrunk trace does not show it"
# shellcheck disable=SC2086
"$x" bisect --policy fcfs $load -o "$dir/none.csv" >>"$dir/out" && fail "bisect of equal runs"
[ -e "$dir/none.csv" ] && fail "a trace without a difference is written"
# Before the first decision: one request, nothing of it done.
# shellcheck disable=SC2086
"$x" diff --policy fcfs --b-policy agent-xpu-v2 $load >>"$dir/out"
if ! cmp -s "$dir/out" tests/golden/diff.txt; then
    diff -u tests/golden/diff.txt "$dir/out"
    if [ "${1:-}" = --update ]; then cp "$dir/out" tests/golden/diff.txt; else fail "the reports differ"; fi
fi

# Where decisions do not fit the temporary files, nothing is said of them: a log that was cut would part earlier, or never.
for command in diff "bisect -o $dir/cut.csv"; do
    # shellcheck disable=SC2086
    (ulimit -f 8 && trap '' XFSZ && exec "$x" $command $pair $load) >"$dir/cut" 2>"$dir/cut.err" && fail "$command: cut logs"
    [ ! -s "$dir/cut" ] && [ ! -e "$dir/cut.csv" ] && grep -q 'room for temporary files' "$dir/cut.err" || fail "$command: $(cat "$dir/cut" "$dir/cut.err")"
done

# Logs of the same two runs part at the same decision.
# shellcheck disable=SC2086
"$x" run --policy agent-xpu-v2 $load --decisions "$dir/a.log" >/dev/null
# shellcheck disable=SC2086
"$x" run --policy agent-xpu-v2:b_rf=1 $load --decisions "$dir/b.log" >/dev/null
"$x" diff "$dir/a.log" "$dir/b.log" >"$dir/logs"
[ $? -eq 1 ] || fail "logs that differ are not exit 1"
[ "$(head -n 1 "$dir/logs")" = "$(head -n 1 tests/golden/diff.txt)" ] || fail "logs part elsewhere"
"$x" diff "$dir/a.log" "$dir/a.log" >/dev/null || fail "a log differs from itself"
exit $bad
