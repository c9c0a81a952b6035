#!/bin/sh
# The policy's score on the public split, with 2 runs at each point:  score.sh [RUNS]
# Once, at the end, on the sealed split:                               score.sh sealed
set -eu
cd "$(dirname "$0")"
if [ "${1:-2}" = sealed ]; then
    set -- --sealed
else
    set -- --replications "${1:-2}" --store reference.db
fi
exec "${XPUSIM:-xpusim}" arena judge python:policy.py:MyPolicy --suite "${SUITE:-laptop-2026.1}" --ledger ledger.csv "$@"
