#!/bin/sh
# docs/headlines.md on stdout: headlines.sh [xpusim]. `make headlines` runs it. TRACES and MACHINES say how many; STORE=FILE.db
# keeps the runs.
set -eu
cd "$(dirname "$0")/../.."
x=${1:-build/xpusim}
traces=${TRACES:-39}
machines=${MACHINES:-32}
how="--headline --replications $traces --uncertainty $machines"
# shellcheck disable=SC2086
table=$("$x" claims $how ${STORE:+--store "$STORE"} --markdown -q)
cat experiments/claims/notes/headlines.md
printf '\n%s\n\n' "$table"
printf 'Made by \140xpusim claims %s\140, with %s, sources of %s. \140make headlines\140 makes this page again.\n' \
    "$how" "$("$x" --version | head -1)" "$(git log -1 --format=%cs 2>/dev/null || echo 'no repository')"
