#!/bin/sh
# A file that is cut short is refused by its name, or its answer is another, for every format that a
# command reads (tests/helpers/truncated_check.py).
set -eu
cd "$(dirname "$0")/../.."
command -v python3 >/dev/null 2>&1 || { echo "skipped: python3 is not installed"; exit 0; }
command -v gnuplot >/dev/null 2>&1 || { echo "skipped: gnuplot is not installed"; exit 0; }
x=$(cd "${BUILD:-build}" && pwd)/xpusim
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
PYTHONDONTWRITEBYTECODE=1 python3 tests/helpers/truncated_check.py "$x" "$dir"
