#!/bin/sh
# Help, man pages, completions and docs have the same options and sentences
# (tests/helpers/helped_check.py).
set -eu
cd "$(dirname "$0")/../.."
command -v python3 >/dev/null 2>&1 || { echo "skipped: python3 is not installed"; exit 0; }
x=$(cd "${BUILD:-build}" && pwd)/xpusim
PYTHONDONTWRITEBYTECODE=1 python3 tests/helpers/helped_check.py "$x"
