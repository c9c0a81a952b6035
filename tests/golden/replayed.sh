#!/bin/sh
# Random runs of random machines and models are replayed from their decisions by a second engine
# with its own kernel times and acceptance of drafts (tests/helpers/replayed.py, priced.py,
# drafted.py), with WHOLE=yes 300 of them.
set -u
cd "$(dirname "$0")/../.." || exit 2
command -v python3 >/dev/null 2>&1 || { echo "skipped: python3 is not installed"; exit 0; }
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
[ "${WHOLE:-}" = yes ] && n=300 || n=25
PYTHONDONTWRITEBYTECODE=1 python3 tests/helpers/replayed_check.py "${BUILD:-build}/xpusim" "$dir" $n
