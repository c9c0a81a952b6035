#!/bin/sh
# `trace import`: drawn files of ten formats, read again by a script of its own from the formats' descriptions: sessions,
# times, prefixes, windows, and what the notes count.
set -u
cd "$(dirname "$0")/../.." || exit 2
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
command -v python3 >/dev/null 2>&1 || { echo "skipped: python3 is not installed"; exit 0; }
exec python3 tests/helpers/imported_check.py "${BUILD:-build}/xpusim" "$dir"
