#!/bin/sh
# Two sides are exchanged, and parts are added up (tests/helpers/mirrored_check.py).
set -eu
cd "$(dirname "$0")/../.."
command -v python3 >/dev/null 2>&1 || { echo "skipped: python3 is not installed"; exit 0; }
x=$(cd "${BUILD:-build}" && pwd)/xpusim
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
PYTHONDONTWRITEBYTECODE=1 python3 tests/helpers/mirrored_check.py "$x" "$dir"
