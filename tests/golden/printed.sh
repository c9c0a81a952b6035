#!/bin/sh
# Every number that commands print is computed again by an independent script
# (tests/helpers/printed_check.py).
set -eu
cd "$(dirname "$0")/../.."
command -v python3 >/dev/null 2>&1 || { echo "skipped: python3 is not installed"; exit 0; }
x=$PWD/${BUILD:-build}/xpusim
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
PYTHONDONTWRITEBYTECODE=1 python3 tests/helpers/printed_check.py "$x" "$dir"
