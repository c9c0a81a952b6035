#!/bin/sh
# The archive of a suite, its certificate and its words are computed again
# (tests/helpers/archived_check.py).
set -eu
cd "$(dirname "$0")/../.."
command -v python3 >/dev/null 2>&1 || { echo "skipped: python3 is not installed"; exit 0; }
x=$(cd "${BUILD:-build}" && pwd)/xpusim
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
PYTHONDONTWRITEBYTECODE=1 python3 tests/helpers/archived_check.py "$x" "$dir"
