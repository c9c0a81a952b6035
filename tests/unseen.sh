#!/bin/sh
# A minute (XPUSIM_SECONDS) of runs that nobody has seen: damaged inputs of every reader, interleavings of real execution,
# random runs under every metamorphic relation, random runs each tried in four ways, a quarter each. Their numbers are new
# every time; XPUSIM_FIRST=N repeats those from N on, in as many blocks as the time allows. $BUILD: the build that runs
# them, best one with sanitizers.
set -u
cd "$(dirname "$0")/.." || exit 2
BUILD=${BUILD:-build}
seconds=${XPUSIM_SECONDS:-60}
first=${XPUSIM_FIRST:-$(od -An -N5 -tu8 /dev/urandom | tr -d ' ')}
out=$(mktemp)
trap 'rm -f "$out"' EXIT
bad=0
echo "unseen: XPUSIM_FIRST=$first repeats what follows ($BUILD)"

blocks() { # what, the step of its numbers, command: runs it with XPUSIM_FIRST until a quarter of the time is over
    what=$1
    step=$2
    shift 2
    end=$(($(date +%s) + seconds / 4))
    n=0
    while :; do
        number=$((first + n * step))
        if ! env XPUSIM_FIRST=$number "$@" >"$out" 2>&1; then
            echo "FAILED: $what: XPUSIM_FIRST=$number $*"
            cat "$out"
            bad=1
            break
        fi
        n=$((n + 1))
        [ "$(date +%s)" -lt $end ] || break
    done
    echo "unseen: $what: $n blocks from $first on"
}
blocks "damaged inputs" 1 env FUZZ_ROUNDS=100 "$BUILD/tests/check" tests/conformance/check_fuzz.c
blocks "interleavings of drive" 500 env XPUSIM_RUNS=500 "$BUILD/tests/check" tests/conformance/check_interleavings.c
blocks "metamorphic relations" 36 env XPUSIM_RUNS=36 "$BUILD/tests/check" tests/conformance/check_relations.c
"$BUILD/tests/campaign/campaign" "$(echo "$seconds" | awk '{ print $1 / 4 / 3600 }')" "$BUILD/findings" "$first" >"$out" 2>&1 ||
    { bad=1; cat "$out"; }
tail -n 1 "$out"
exit $bad
