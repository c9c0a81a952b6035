#!/bin/sh
# `trace import` gets numbers that no request has. Each is refused, or read so that a trace comes
# out, for each number of the corpus' files.
set -u
cd "$(dirname "$0")/../.." || exit 2
command -v python3 >/dev/null 2>&1 || { echo "skipped: python3 is not installed"; exit 0; }
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
python3 tests/helpers/wrong_numbers_check.py "${BUILD:-build}/xpusim" "$dir"
