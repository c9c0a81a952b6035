#!/bin/sh
# Hand-written pages have numbers that tutorial.sh does not run. Pages name the command of each in a
# comment, and it runs again (tests/helpers/quotes_check.py). With WHOLE=yes those that take long
# run, too.
#   quoted.sh [PAGE...]
set -u
cd "$(dirname "$0")/../.." || exit 2
command -v python3 >/dev/null 2>&1 || { echo "skipped: python3 is not installed"; exit 0; }
XPUSIM=$PWD
export XPUSIM
case ${BUILD:-build} in /*) tools=${BUILD:-build} ;; *) tools=$PWD/${BUILD:-build} ;; esac
PATH=$tools:$PWD/tests/helpers:$PATH
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
bad=0
check="python3 tests/helpers/quotes_check.py"
# Each of these is found: a page with another number, a number with more digits, rows in another
# order or too many, a command that fails or prints nothing.
try() { # does it pass (0 or 1), command, text of the page
    n=$((${n:-0} + 1))
    printf '<!-- $ %s -->\n\n%s\n' "$2" "$3" >"$dir/$n-$1.md"
}
try 0 'echo 3.5 s' 'It takes 3.5 s.'
try 0 'printf "| a | ... | 2 |\n| b | 3 |\n"' '| a | 1 | 2 |
| b | 3 |'
try 1 'echo 3.5 s' 'It takes 3.6 s.'
try 1 'echo 3.5' 'It takes 13.5 or 3.51 s, or 1.3.5.'
try 1 'printf "| a |\n| b |\n"' '| b |
| a |'
try 0 'printf "| a |\n| b |\n"' '| of two |
|---|
| a |
| b |

| of none |
|---|
| c |'
try 1 'printf "| a |\n| b |\n"' '| of three |
|---|
| a |
| c |
| b |'
try 0 'printf "| a |\n...\n"' '| of two |
|---|
| a |
| c |'
try 1 'printf "| a |\n"' '| of two |
|---|
| a |
| c |'
try 1 'echo 3' '
## Another part has 3'
try 1 'echo 3; false' 'It takes 3 s.'
try 1 true 'It takes 3 s.'
$check "$dir"/*.md >"$dir/said" && bad=1
for page in "$dir"/*.md; do
    seen=0
    grep -qF "FAILED: $page" "$dir/said" && seen=1
    case $page in *-$seen.md) ;; *) echo "FAILED: $(cat "$page" "$dir/said")"; bad=1 ;; esac
done
if [ $# -eq 0 ]; then
    set -- $(find . -name '*.md' -not -path './build*' -not -path './.git/*' -exec grep -lE '^<!-- (WHOLE )?\$ ' {} + | sort)
fi
$check "$@" || bad=1
exit $bad
