#!/bin/sh
# Every page is in the index, and every link of a page leads somewhere. The stage of `make docs` has
# all commands and metrics. Without mkdocs it says in one sentence what to do.
set -u
cd "$(dirname "$0")/../.." || exit 2
command -v python3 >/dev/null 2>&1 || { echo "skipped: python3 is not installed"; exit 0; }
x=$(cd "${BUILD:-build}" && pwd)/xpusim
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
bad=0
fail() { echo "FAILED: $*"; bad=1; }
ln -s "$x" "$dir/xpusim"
XPUSIM_DATA_DIR=$PWD BUILD=$dir python3 docs/site.py --check || fail "docs/site.py --check"
pages=$dir/docs/pages
for c in $("$x" help | sed -n 's/^  \([a-z-]*\) .*/\1/p'); do
    grep -qx "## $c" "$pages/reference/commands.md" || fail "no page of the command $c"
done
"$x" list metric -q --csv | tail -n +2 | cut -d, -f1 | while read -r metric; do
    grep -qF "| $metric |" "$pages/reference/metric.md" || { echo "FAILED: no row of the metric $metric"; exit 1; }
done || bad=1
python3 tests/helpers/stale_check.py "$x" || bad=1
# Lists need an empty line before them there, and a link to a source file has no page to lead to.
grep -q "docs/concepts/comparison.md" "$pages/README.md" || fail "the overview lost its links"
python3 -c 'import mkdocs' 2>/dev/null || {
    said=$(XPUSIM_DATA_DIR=$PWD BUILD=$dir python3 docs/site.py) && fail "no mkdocs, and exit 0"
    [ "$(echo "$said" | wc -l)" = 1 ] || fail "no mkdocs: $said"
}
exit $bad
