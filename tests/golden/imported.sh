#!/bin/sh
# `trace import` reads drawn files of sixteen formats. Scripts of their own read them again from the
# formats' descriptions: sessions, times, prefixes, windows, dependences of agents, and the counts
# of notes.
set -u
cd "$(dirname "$0")/../.." || exit 2
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
command -v python3 >/dev/null 2>&1 || { echo "skipped: python3 is not installed"; exit 0; }
python3 tests/helpers/imported_check.py "${BUILD:-build}/xpusim" "$dir" || exit 1
exec python3 tests/helpers/imported_graphs.py "${BUILD:-build}/xpusim" "$dir"
