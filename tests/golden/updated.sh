#!/bin/sh
# calibrate --measured: what it prints of the numbers that measured rows update is what the file says.
set -u
cd "$(dirname "$0")/../.." || exit 2
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
command -v python3 >/dev/null 2>&1 || { echo "skipped: python3 is not installed"; exit 0; }
python3 tests/helpers/updated_check.py "${BUILD:-build}/xpusim" "$dir"
