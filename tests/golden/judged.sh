#!/bin/sh
# Policies are compared with second implementations from their definitions, in Python with plain
# lists (tests/helpers/judges*.py). They must agree decision by decision on random workloads, with
# WHOLE=yes on 40 for each.
set -u
cd "$(dirname "$0")/../.." || exit 2
command -v python3 >/dev/null 2>&1 || { echo "skipped: python3 is not installed"; exit 0; }
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
"${CC:-gcc}" -std=c17 -D_POSIX_C_SOURCE=200809L -O1 -fPIC -shared -I. -o "$dir/planned.so" tests/golden/planned.c \
    policies/clairvoyant.c sim/base/rng.c -lgsl || { echo "FAILED: planned.c does not compile"; exit 1; }
[ "${WHOLE:-}" = yes ] && n=40 || n=7
python3 tests/helpers/judged_check.py "${BUILD:-build}/xpusim" "$dir" $n
