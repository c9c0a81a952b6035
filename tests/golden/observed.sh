#!/bin/sh
# xpusim observe gets answers from a script, on a clock of its own. Traces and streams are random,
# and every instant, status, number of tokens and prompt is computed again.
set -eu
cd "$(dirname "$0")/../.."
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
command -v python3 >/dev/null 2>&1 || { echo "skipped: python3 is not installed"; exit 0; }
# shellcheck disable=SC2046
${CC:-gcc} -O1 -shared -fPIC $(pkg-config --cflags libcurl) -o "$dir/libcurl.so.4" tests/helpers/curl/scripted.c
python3 tests/helpers/observed_check.py "${BUILD:-build}/xpusim" "$dir/libcurl.so.4" "$dir" 100
