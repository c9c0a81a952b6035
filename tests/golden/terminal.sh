#!/bin/sh
# On a terminal headings are bold and lines fit, and NO_COLOR and pipes make output plain. The
# terminal is a pseudo-terminal of script(1), without which this is left out.
set -u
cd "$(dirname "$0")/../.." || exit 2
x=${BUILD:-build}/xpusim
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
bad=0
fail() { echo "FAILED: $*"; bad=1; }
if ! command -v script >/dev/null 2>&1; then
    echo "skipped: no script(1) for a terminal"
    exit 0
fi
esc=$(printf '\033')
compare="$x compare --policy fcfs --policy agent-xpu-v2 --replications 2 --workload mixed:reactive_per_min=6,duration_s=30 --quiet"
explain="$x explain --interference --policy agent-xpu-v2 --workload mixed:reactive_per_min=6,proactive_per_min=12,duration_s=60"
on_terminal() { # columns, command: stdout without carriage returns
    TERM=xterm script -qec "stty cols $1; $2" /dev/null </dev/null | tr -d '\r'
}
$compare >"$dir/pipe" || fail compare
grep -q "$esc" "$dir/pipe" && fail "escapes in a pipe"
on_terminal 200 "$compare" >"$dir/tty"
grep -q "$esc\[1m" "$dir/tty" || fail "no bold heading on a terminal"
sed "s/$esc\[[01]m//g" "$dir/tty" | diff "$dir/pipe" - >/dev/null || fail "text differs on a wide terminal"
NO_COLOR=1 on_terminal 200 "$compare" | diff "$dir/pipe" - >/dev/null || fail "NO_COLOR is not plain"
on_terminal 60 "$explain" | sed "s/$esc\[[01]m//g" >"$dir/narrow"
$explain >"$dir/wide"
[ "$(sed -n 3,12p "$dir/wide" | awk '{print length}' | sort -n | tail -1)" -gt 60 ] || fail "the table was narrow anyway"
[ "$(sed -n 3,12p "$dir/narrow" | awk '{print length}' | sort -n | tail -1)" -le 60 ] || fail "lines over 60 columns"
exit $bad
