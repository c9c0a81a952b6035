#!/bin/sh
# Runs the tests given and every script test, JOBS (default: processors and three) at once; ends with "N passed, N failed,
# N skipped", and with what the failed ones printed last, since logs are cut at their beginning. A part that cannot run here
# prints `skipped: REASON` and passes. More than MAX_SKIPPED of them fail (no limit by default); a reason counts once in
# each test that passes. WHOLE=yes, as CI says: what is random or long is done whole, and not a part of it. SCRIPTS
# replaces the script tests. A test is a file of $BUILD/tests/check (tests/check.c) or a Check program of its own; one that
# crashes or says nothing counts as one failure. Each line has the seconds that the test took, and those of a processor
# that it and its processes had.
#
#   run.sh TEST...        all of it
#   run.sh --one TEST     one of them or a script: its line, and its output where that says something
set -u
case $0 in */*) cd "${0%/*}/.." || exit 2 ;; *) cd .. || exit 2 ;; esac
BUILD=${BUILD:-build}
export BUILD

LASTS=30 # lines of a failed test that are printed again
# What follows is called for each of 340 tests. A process takes a millisecond, so it is the shell's own words and one awk.
begun=
{ read -r begun _ </proc/uptime; } 2>/dev/null || begun=$(date +%s)
# Name, kind and status of a test, without one where it was left out. Prints its line, and what is to be seen of its output $out
# where it passed. Returns 1 where it failed.
result() {
    times >"$out.times" # of this shell and what it waited for: no subshell has these
    awk -v name="$1" -v kind="$2" -v status="$3" -v begun="$begun" '
        FILENAME ~ /[.]times$/ { gsub(/[ms]/, " "); for (i = 1; i < NF; i += 2) s += 60 * $i + $(i + 1); next }
        # Check prints "NN%: Checks: C, Failures: F, Errors: E"
        kind == "program" && /^[0-9]+%: Checks: / { split($0, word, /[:, ]+/); checks = word[3]; bad = word[5] + word[7] }
        (/^skipped: / || (kind == "program" && /^(oracle|note): /)) && !seen[$0]++ { said[++n] = $0 }
        END {
            if ((getline now <"/proc/uptime") > 0) split(now, word, " ")
            else {
                srand() # from the clock
                word[1] = srand()
            }
            if (kind == "script") checks = status != ""
            if (kind == "program" && checks == 0) checks = bad = 1
            if (!bad && status != "" && status != 0) bad = 1
            printf "%-56s %4d passed %4d failed %5d s %7.1f s of processor\n", name, checks - bad, bad, word[1] - begun, s
            for (i = 1; i <= n && !bad; i++) print said[i]
            exit bad > 0
        }' "$out.times" "$out"
}

one() { # test: its line, and its output where that says something
    case $1 in
    *.sh)
        sh "$1" >"$out" 2>&1
        result "$1" script $? || cat "$out"
        ;;
    *)
        name=${1#"$BUILD"/}
        case $1 in *.c) set -- "$BUILD/tests/check" "$1" ;; esac
        # Limits of time are for what hangs, and those in the sources are for a machine that does nothing else.
        CK_DEFAULT_TIMEOUT=${CK_DEFAULT_TIMEOUT:-300} CK_TIMEOUT_MULTIPLIER=${CK_TIMEOUT_MULTIPLIER:-5} "$@" >"$out" 2>&1
        result "${name%.c}" program $? || cat "$out"
        ;;
    esac
}

file_of() { # test, folder: sets $file, the name with _ for /
    folder=$2
    IFS=/
    # shellcheck disable=SC2086
    set -- $1
    IFS=_
    file=$folder/$*
    unset IFS
}

case ${1:-} in
--one)
    out=$(mktemp)
    trap 'rm -f "$out" "$out.times"' EXIT
    one "$2"
    exit 0
    ;;
--into) # test: of the whole, whose folder is $lines
    file_of "$2" "$lines"
    out=$lines/.$$
    text=$(one "$2" 2>&1)
    printf '%s\n' "$text" >"$file"
    printf '%s\n' "$text" # not cat, which copies past the place of others that write to the same file
    exit 0
    ;;
esac

# The interpreter itself, where python3 is a script that looks for it (pyenv); Debian's own, where it is there: tests start it
# hundreds of times, and what is installed for another one may begin with every start.
tools=$(mktemp -d)
trap 'rm -rf "$tools"' EXIT
for python in /usr/bin/python3 "$(python3 -S -c 'import sys; print(sys.executable)' 2>/dev/null)"; do
    "$python" -S -c 'import sys; sys.exit(sys.version_info < (3, 9))' 2>/dev/null || continue
    ln -s "$python" "$tools/python3"
    PATH=$tools:$PATH
    # Compiled once: where PYTHONDONTWRITEBYTECODE is set, every start of a policy would do it again.
    env -u PYTHONDONTWRITEBYTECODE "$python" -S -m compileall -q policies/python tests/helpers
    break
done
export PYTHONNOUSERSITE=1 # nor what this user has for every start

# The long ones first, so that none is left alone at the end: what may build another tree, those above two seconds of
# processor time, by how long they take with their waiting, then scripts, which also wait. Three more at once than there are
# processors: several wait for seconds at the same time, and each leaves a processor idle.
# Each writes to a file of its own, so that lines of two tests do not mix.
lines=$(mktemp -d)
trap 'rm -rf "$lines" "$tools"' EXIT
export lines
first="tests/golden/determinism.sh tests/golden/python.sh tests/golden/send_in.sh tests/golden/plugin.sh tests/golden/tutorial.sh
    tests/golden/wasm.sh tests/golden/live.sh tests/golden/judged.sh tests/conformance/check_npu.c tests/golden/options_twice.sh tests/golden/drive.sh
    tests/golden/validate.sh tests/conformance/check_drive.c tests/golden/measure_windows.sh
    tests/conformance/check_drive_engines.c tests/golden/cheats.sh tests/golden/plots.sh
    tests/golden/measure.sh tests/unit/check_kernel_fit.c tests/golden/arena.sh tests/golden/options.sh
    tests/golden/report.sh tests/conformance/check_collapse.c tests/golden/stress.sh tests/golden/uncertainty.sh tests/golden/figures.sh
    tests/golden/demo.sh tests/golden/store.sh tests/golden/permuted.sh tests/golden/selftest.sh
    tests/golden/printed.sh tests/golden/shuffled.sh tests/golden/messages.sh tests/golden/truncated.sh
    tests/golden/skips.sh tests/golden/numbers.sh tests/golden/schemas.sh tests/golden/claims_verdicts.sh
    tests/unit/check_uncertainty.c tests/golden/gate.sh tests/golden/memory.sh tests/golden/quoted.sh
    tests/golden/mcp.sh tests/golden/accuracy.sh tests/golden/sweep.sh tests/golden/python_package.sh
    tests/golden/sturdy.sh tests/golden/new_files.sh tests/unit/check_claims_fit.c tests/conformance/check_policies.c
    tests/conformance/check_relations.c tests/unit/check_backends.c tests/unit/check_leave_machine.c
    tests/oracle/check_run_status.c tests/oracle/check_coverage.c"

# Under a sanitizer (SANITIZED) these are left out: they compare what a sanitized build prints as the usual one does, by
# commands that other tests run too (claims of six verdicts are in schemas.sh), or they run nothing that was built. What starts
# threads or processes stays. Others do less with a sanitizer, and say why: it finds a fault in the first run of a line, and
# what more runs are compared for the usual build finds, with WHOLE=yes in CI.
same="tests/golden/tutorial.sh tests/golden/quoted.sh tests/golden/accuracy.sh tests/golden/uncertainty.sh
    tests/golden/options_twice.sh tests/golden/printed.sh tests/golden/permuted.sh tests/golden/determinism.sh
    tests/golden/claims_verdicts.sh"
unbuilt="tests/golden/prose.sh tests/golden/mutants.sh tests/golden/skips.sh"
leave_out() { # reason, scripts...: those of $all go, and are counted as skipped
    reason=$1
    shift
    for t in "$@"; do
        echo "$all" | grep -qxF "$t" || continue
        all=$(echo "$all" | grep -vxF "$t")
        file_of "$t" "$lines"
        echo "skipped: $reason" >"$out"
        result "$t" script "" >"$file"
        echo "$t: skipped: $reason"
    done
}
# shellcheck disable=SC2086
all=$(printf '%s\n' ${SCRIPTS-tests/golden/*.sh} "$@")
# shellcheck disable=SC2086
if [ -n "${SANITIZED:-}" ]; then
    out=$lines/.out
    leave_out "under a sanitizer: it compares what the usual build prints, too" $same
    leave_out "under a sanitizer: it runs nothing that is built" $unbuilt
fi
# shellcheck disable=SC2086
printf '%s\n' "$all" "" $first |
    awk '
        !early && /./ && !(left[$0]++) { test[++n] = $0 }
        early && left[$0] { print; left[$0] = 0 }
        !/./ { early = 1 }
        END { for (i = 1; i <= n; i++) if (left[test[i]]) print test[i] }' |
    while read -r test; do
        file_of "$test" "$lines"
        echo "$test: nothing was printed" >"$file" # until it is
        echo "$test"
    done |
    xargs -P "${JOBS:-$(($(nproc 2>/dev/null || echo 2) + 3))}" -I{} sh tests/run.sh --into {}
# Counts are in the first line of each file alone: what a failed test printed may have such lines, and parts that it skipped.
awk -v most="${MAX_SKIPPED:-}" '
    FNR == 1 { file[++n] = FILENAME; bad = !/ passed +[0-9]+ failed +[0-9]+ s +[0-9.]+ s of processor$/ }
    FNR == 1 && bad { failed++ }
    FNR == 1 && !bad { passed += $(NF - 9); failed += $(NF - 7); bad = $(NF - 7) > 0 }
    { name[n] = FNR == 1 ? $1 : name[n]; wrong[n] = bad }
    /^skipped: / && !bad { skips[++skipped] = name[n] ": " $0 }
    END {
        print passed + 0 " passed, " failed + 0 " failed, " skipped + 0 " skipped"
        too_many = most != "" && skipped > most + 0
        if (too_many) {
            print "at most " most " may be skipped here (MAX_SKIPPED)"
            for (i = 1; i <= skipped; i++) print skips[i]
        }
        for (i = 1; i <= n; i++) {
            if (wrong[i]) {
                print "failed: " name[i]
                fflush()
                system("tail -n '"$LASTS"' " file[i])
            }
        }
        exit failed > 0 || passed == 0 || too_many
    }' "$lines"/*
