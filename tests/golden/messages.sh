#!/bin/sh
# Every warning, note and refusal has a case that prints it and a case that does not
# (tests/helpers/messages_check.py).
set -eu
cd "$(dirname "$0")/../.."
command -v python3 >/dev/null 2>&1 || { echo "skipped: python3 is not installed"; exit 0; }
x=$PWD/${BUILD:-build}/xpusim
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
PYTHONDONTWRITEBYTECODE=1 python3 tests/helpers/messages_check.py "$x" "$dir"
