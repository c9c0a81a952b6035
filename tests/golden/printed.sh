#!/bin/sh
# Every number that commands print is worked out again by an independent script: tests/helpers/printed_check.py.
set -eu
cd "$(dirname "$0")/../.."
command -v python3 >/dev/null 2>&1 || { echo "skipped: python3 is not installed"; exit 0; }
x=$PWD/${BUILD:-build}/xpusim
if [ "${BUILD:-build}" != build ] && [ -z "${ANY_BUILD:-}" ]; then # what is printed is the same in every build (determinism.sh)
    echo "note: tried with the usual build only"
    exit 0
fi
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
PYTHONDONTWRITEBYTECODE=1 python3 tests/helpers/printed_check.py "$x" "$dir"
