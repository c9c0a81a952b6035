#!/bin/sh
# Does the policy serve every request, on random loads and with little memory?
set -eu
cd "$(dirname "$0")"
"${XPUSIM:-xpusim}" check-policy python:policy.py:MyPolicy --loads "${1:-5}"
