#!/bin/sh
# calibrate --measured prints numbers that measured rows update, and the file must have the same.
set -u
cd "$(dirname "$0")/../.." || exit 2
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
command -v python3 >/dev/null 2>&1 || { echo "skipped: python3 is not installed"; exit 0; }
python3 tests/helpers/updated_check.py "${BUILD:-build}/xpusim" "$dir"
