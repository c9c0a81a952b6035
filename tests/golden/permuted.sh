#!/bin/sh
# The order of policies and metrics on the command line changes the order of printed rows, and
# nothing else. A row that is left out, printed twice or under another's name is not the same row in
# another order. The first policy stays the first, since others are compared with it. The first
# metric stays, since it is the question (docs/concepts/comparison.md).
set -u
cd "$(dirname "$0")/../.." || exit 2
command -v python3 >/dev/null 2>&1 || { echo "skipped: python3 is not installed"; exit 0; }
exec python3 tests/helpers/permuted_check.py "${BUILD:-build}/xpusim"
