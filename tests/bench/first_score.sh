#!/bin/sh
# From a clone to the first score of a policy of one's own, in seconds:  first_score.sh [URL]
set -eu
url=${1:-file://$(git -C "$(dirname "$0")" rev-parse --show-toplevel)}
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
cd "$dir"
step() { # what it is, command
    what=$1
    shift
    before=$(date +%s)
    "$@" >log 2>&1 || {
        cat log
        exit 1
    }
    echo "$what: $(($(date +%s) - before)) s"
}
begin=$(date +%s)
step clone git clone -q --depth 1 "$url" xpusim
step build make -C xpusim -j"$(nproc)" build/xpusim
step begin xpusim/build/xpusim arena new mine
step score env XPUSIM="$dir/xpusim/build/xpusim" sh mine/score.sh
grep score log
echo "in all: $(($(date +%s) - begin)) s; user and system of the shell, then of what it started:"
times
