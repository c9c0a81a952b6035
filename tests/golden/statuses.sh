#!/bin/sh
# Every command has the right exit status when all goes well, when a run fails, and for bad input
# (tests/helpers/statuses_check.py).
set -eu
cd "$(dirname "$0")/../.."
command -v python3 >/dev/null 2>&1 || { echo "skipped: python3 is not installed"; exit 0; }
x=$(cd "${BUILD:-build}" && pwd)/xpusim
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
if grep -q __asan_init "$x"; then # OpenVINO cannot be loaded: the program looks where there is none
    mkdir "$dir/engines"
    [ ! -e "${x%/*}/engines/ggml.so" ] || cp "${x%/*}/engines/ggml.so" "$dir/engines"
    XPUSIM_ENGINES=$dir/engines
    export XPUSIM_ENGINES
fi
PYTHONDONTWRITEBYTECODE=1 python3 tests/helpers/statuses_check.py "$x" "$dir"
