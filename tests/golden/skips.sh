#!/bin/sh
# A test that did not run is counted, and .ci/run does not pass without its originals, engines and Slurm: each of them is
# asked for here on a machine that lacks what it needs.
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

# The runner: one script passes, one skips two of its parts (and says one of them twice).
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
# What a failed test skipped is no skip more, what it printed counts for nothing, and its last lines are the last ones of all.
printf 'seq 101 150; echo "a  9 passed  9 failed  1 s  1.0 s of processor"; echo "skipped: the rest"; exit 1' >"$dir/fails.sh"
ends 1 '^1 passed, 1 failed, 0 skipped$' runner "$dir/passes.sh $dir/fails.sh" ''
{ echo "failed: $dir/fails.sh"; sh "$dir/fails.sh" | tail -n 30; } >"$dir/last"
sed '1,/^1 passed, 1 failed/d' "$dir/out" | cmp -s - "$dir/last" || fail "the end of a run with a failed test: $(cat "$dir/out")"
ends 1 "skips.sh: skipped: that$" runner "$dir/passes.sh $dir/skips.sh" 1
# Under a sanitizer what exercises no code of its own is left out, which counts as skipped.
SANITIZED=yes
export SANITIZED
ends 0 '^1 passed, 0 failed, 2 skipped$' runner "$dir/passes.sh tests/golden/prose.sh tests/golden/quoted.sh" ''
ends 1 '^at most 1 may be skipped here' runner "$dir/passes.sh tests/golden/prose.sh tests/golden/quoted.sh" 1
unset SANITIZED
# A second of a processor, as the kernel limits them, in a process of the test's own. The limit counts by the clock of the
# scheduler, and what is reported by ticks, which miss a part where four processes take turns.
printf 'sh -c "timeout 600 sh -c \"ulimit -t 1; while :; do :; done\""; exit 0' >"$dir/works.sh"
ends 0 '  \(0[.][6-9]\|[1-9][.][0-9]\) s of processor$' runner "$dir/works.sh" ''

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
