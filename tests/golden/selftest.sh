#!/bin/sh
# The command's own checks: closed forms and laws, then the negative controls.
set -eu
cd "$(dirname "$0")/../.."
x=${BUILD:-build}/xpusim
"$x" selftest
"$x" selftest --controls
