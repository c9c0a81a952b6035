#!/bin/sh
# Every statistic against scipy on random samples (make statistics; SEED=N draws others): tests/helpers/statistics_check.py.
set -eu
cd "$(dirname "$0")/.."
BUILD=${BUILD:-build}
python=${PYTHON:-python3}
"$python" -c 'import numpy, scipy' 2>/dev/null || { echo "skipped: $python has no scipy (pip install scipy)"; exit 0; }
mkdir -p "$BUILD"
# shellcheck disable=SC2046
${CC:-gcc} -shared -fPIC -O1 -I. -D_POSIX_C_SOURCE=200809L -std=c17 -Wl,-z,defs -o "$BUILD/statistics.so" sim/stats/*.c \
    sim/base/arena.c sim/base/portable.c sim/base/rng.c sim/base/err.c sim/base/quantile.c sim/base/text.c sim/base/halt.c \
    $(pkg-config --libs gsl) -lm
"$python" -B tests/helpers/statistics_check.py "$PWD/$BUILD/statistics.so" "${SEED:-1}"
