#!/bin/sh
# diff prints the requests of the state in which two policies part. They are compared with each
# one's own runs.
set -u
cd "$(dirname "$0")/../.." || exit 2
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
command -v python3 >/dev/null 2>&1 || { echo "skipped: python3 is not installed"; exit 0; }
python3 tests/helpers/diffed_check.py "${BUILD:-build}/xpusim" "$dir"
