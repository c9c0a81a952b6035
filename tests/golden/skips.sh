#!/bin/sh
# A test that did not run is counted, and .ci/run does not pass without its originals, engines and
# Slurm. Each of them is asked for here on a machine that lacks the required programs.
set -u
cd "$(dirname "$0")/../.." || exit 2
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
bad=0
fail() {
    echo "FAILED: $*"
    bad=1
}
ends() { # status, text of the output, command...
    status=$1
    want=$2
    shift 2
    "$@" >"$dir/out" 2>&1
    got=$?
    if [ $got -ne "$status" ] || ! grep -q -- "$want" "$dir/out"; then
        fail "(exit $got, wanted $status and \"$want\"): $*"
        cat "$dir/out"
    fi
}

# In the runner one script passes, and one skips two of its parts (and says one of them twice).
echo 'exit 0' >"$dir/passes.sh"
printf 'echo "skipped: this"\necho "skipped: that"\necho "skipped: this"\n' >"$dir/skips.sh"
runner() { # scripts, MAX_SKIPPED
    SCRIPTS=$1 MAX_SKIPPED=$2 sh tests/run.sh
}
ends 0 '^2 passed, 0 failed, 2 skipped$' runner "$dir/passes.sh $dir/skips.sh" ''
ends 0 '^2 passed, 0 failed, 2 skipped$' runner "$dir/passes.sh $dir/skips.sh" 2
ends 1 '^at most 1 may be skipped here' runner "$dir/passes.sh $dir/skips.sh" 1
ends 1 '^at most 0 may be skipped here' runner "$dir/passes.sh $dir/skips.sh" 0
ends 0 '^1 passed, 0 failed, 0 skipped$' runner "$dir/passes.sh" 0
# Skips of a failed test are no skips more, its printed counts do not count, and its last lines are
# the last ones of all.
printf 'seq 101 150; echo "a  9 passed  9 failed  1 s  1.0 s of processor"; echo "skipped: the rest"; exit 1' >"$dir/fails.sh"
ends 1 '^1 passed, 1 failed, 0 skipped$' runner "$dir/passes.sh $dir/fails.sh" ''
{ echo "failed: $dir/fails.sh"; sh "$dir/fails.sh" | tail -n 30; } >"$dir/last"
sed '1,/^1 passed, 1 failed/d' "$dir/out" | cmp -s - "$dir/last" || fail "the end of a run with a failed test: $(cat "$dir/out")"
ends 1 "skips.sh: skipped: that$" runner "$dir/passes.sh $dir/skips.sh" 1
# Under a sanitizer tests that exercise no code of its own are left out, which counts as skipped.
SANITIZED=yes
export SANITIZED
ends 0 '^1 passed, 0 failed, 2 skipped$' runner "$dir/passes.sh tests/golden/prose.sh tests/golden/quoted.sh" ''
ends 1 '^at most 1 may be skipped here' runner "$dir/passes.sh tests/golden/prose.sh tests/golden/quoted.sh" 1
unset SANITIZED
# A second of a processor, as the kernel limits them, is used in a process of the test's own. The
# shell that waited for it has that time, to a tenth and the runner's own needs.
printf 'sh -c "timeout 600 sh -c \"ulimit -t 1; while :; do :; done\""; times >%s; exit 0' "$dir/had" >"$dir/works.sh"
ends 0 '  [0-9]*[.][0-9] s of processor$' runner "$dir/works.sh" ''
sed 's/[ms]/ /g' "$dir/had" | awk -v said="$(sed -n 's/.* \([0-9.]*\) s of processor$/\1/p' "$dir/out")" '
    { had += $1 * 60 + $2 + $3 * 60 + $4 } END { exit !(had > 0.5 && said >= had - 0.051 && said <= had + 0.15) }' ||
    fail "the processor time of a test: $(cat "$dir/had" "$dir/out")"

# Another system, another user, and no Python that works.
bare() { # command...
    env PATH="$dir/bare:$PATH" XDG_CACHE_HOME="$dir/cache" "$@"
}
mkdir "$dir/bare"
printf '#!/bin/sh\necho Other\n' >"$dir/bare/uname"
printf '#!/bin/sh\necho 1000\n' >"$dir/bare/id"
printf '#!/bin/sh\nexit 1\n' >"$dir/bare/python3"
chmod +x "$dir"/bare/*
ends 0 '^skipped: originals: .* openvino was not compared' bare sh tests/originals/originals.sh openvino
ends 1 '^skipped: originals: .* openvino was not compared' bare sh tests/originals/originals.sh --must openvino
ends 0 '^skipped: Slurm' bare sh tests/slurm.sh
ends 1 '^skipped: Slurm' bare sh tests/slurm.sh --must
ends 0 'engines: ggml is not there' bare sh .ci/engines.sh
ends 1 'engines: openvino is not there' bare sh .ci/engines.sh --must
grep -q 'originals MUST=--must' .ci/run && grep -q 'slurm.sh --must' .ci/run && grep -q 'GOAL=unseen' .ci/run && grep -q 'engines.sh" --must' .ci/setup.sh ||
    fail ".ci/run does not ask for all of them"
exit $bad
