#!/bin/sh
# Values, marks and drawn data of a paper's figure are computed again
# (tests/helpers/figured_check.py).
set -eu
cd "$(dirname "$0")/../.."
command -v python3 >/dev/null 2>&1 || { echo "skipped: python3 is not installed"; exit 0; }
x=$(cd "${BUILD:-build}" && pwd)/xpusim
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
PYTHONDONTWRITEBYTECODE=1 python3 tests/helpers/figured_check.py "$x" "$dir"
