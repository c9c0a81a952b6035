#!/bin/sh
# diff: the requests of the state in which two policies part, by what runs of each by itself say of requests.
set -u
cd "$(dirname "$0")/../.." || exit 2
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
command -v python3 >/dev/null 2>&1 || { echo "skipped: python3 is not installed"; exit 0; }
python3 tests/helpers/diffed_check.py "${BUILD:-build}/xpusim" "$dir"
