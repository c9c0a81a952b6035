#!/bin/sh
# The order of rows in a file means nothing to its readers (tests/helpers/shuffled_check.py).
set -eu
cd "$(dirname "$0")/../.."
command -v python3 >/dev/null 2>&1 || { echo "skipped: python3 is not installed"; exit 0; }
command -v gnuplot >/dev/null 2>&1 || { echo "skipped: gnuplot is not installed"; exit 0; }
x=$(cd "${BUILD:-build}" && pwd)/xpusim
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
PYTHONDONTWRITEBYTECODE=1 python3 tests/helpers/shuffled_check.py "$x" "$dir"
