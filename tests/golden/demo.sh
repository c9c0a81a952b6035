#!/bin/sh
# `make demo` must end and name both models. Its page has every figure and two comparisons of five
# policies. It is at most 1.7 MB, of which a third is static figures.
set -u
cd "$(dirname "$0")/../.." || exit 2
build=$(cd "${BUILD:-build}" && pwd)
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
bad=0
fail() { echo "FAILED: $*"; bad=1; }

ln -s "$build/xpusim" "$dir/xpusim"
DEMO_TRACES=${WHOLE:+20}
[ -z "${SANITIZED:-}" ] || DEMO_TRACES=4 # the least; each is as the others, and takes ten times as long
export DEMO_TRACES="${DEMO_TRACES:-5}" # 20 traces with WHOLE=yes, as users have
XPUSIM_DATA_DIR=$PWD BUILD=$dir sh experiments/demo.sh >"$dir/out" 2>"$dir/err" || { fail "make demo"; cat "$dir/err"; }
for model in llama-3.2-3b llama-3.1-8b; do
    grep -q "^### $model" "$dir/out" || fail "no comparison of $model"
done
if ! command -v gnuplot >/dev/null 2>&1; then
    echo "skipped: the page, as gnuplot is missing"
    exit $bad
fi
page=$dir/demo/report.html
size=$(wc -c <"$page")
[ "$size" -le 1700000 ] || fail "the page has $size bytes"
[ "$size" -ge 800000 ] || fail "the page has $size bytes only: figures are missing"
grep -q '<section id=live>' "$page" || fail "the page is not alive"
grep -q overloaded "$page" || fail "the page hides that runs were overloaded"
[ "$(grep -c '<svg' "$page")" -ge 20 ] || fail "the page has $(grep -c '<svg' "$page") figures"
exit $bad
