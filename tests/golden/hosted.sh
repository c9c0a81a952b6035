#!/bin/sh
# Plug-ins run in a process of their own (XPUSIM_JAIL=on), by a start or by a fork. One does
# anything, asks everything and counts all calls (asks.c). It must decide and count the same as in
# the simulator's process. Nonsense ends its run.
set -u
cd "$(dirname "$0")/../.." || exit 2
build=${BUILD:-build}
x=$(cd "$build" && pwd)/xpusim
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
bad=0
fail() {
    echo "FAILED: $*"
    bad=1
}
if grep -q __asan_init "$x"; then
    echo "skipped: a plug-in in a process of its own has less memory than the address sanitizer wants"
    exit 0
fi
asks=$dir/asks.so
"${CC:-gcc}" -std=c17 -D_POSIX_C_SOURCE=200809L -O1 -fPIC -shared -I. -o "$asks" tests/golden/asks.c tests/helpers/wild.c \
    sim/base/rng.c || { fail "asks.c does not compile"; exit 1; }

both() { # name, command...: the same output, log and exit status in the jail and in this process
    name=$1
    shift
    for jail in on off; do
        XPUSIM_JAIL=$jail "$x" "$@" >"$dir/$jail" 2>"$dir/$jail.err"
        echo "exit $?" >>"$dir/$jail"
    done
    if grep -q 'without a jail' "$dir/on.err"; then
        echo "skipped: nothing confines a process here"
        exit 0
    fi
    cmp "$dir/on" "$dir/off" || fail "$name: differs in a process of its own"
    tail -n 1 "$dir/on" | grep -q '^exit [01]$' || { fail "$name:"; cat "$dir/on.err"; }
}
run() { # name, options...
    name=$1
    shift
    for jail in on off; do
        XPUSIM_JAIL=$jail "$x" run --trouble '' --json --decisions "$dir/$jail.log" "$@" >"$dir/$jail" 2>"$dir/$jail.err" ||
            { fail "$name, jail $jail:"; cat "$dir/$jail.err"; }
    done
    cmp "$dir/on" "$dir/off" && cmp "$dir/on.log" "$dir/off.log" || fail "$name: differs in a process of its own"
    [ "$(grep -c 'digest_' "$dir/on")" -eq 16 ] || fail "$name: it counted nothing"
}

both "its description" list policy "$asks"
grep -q 'share.*0.25' "$dir/on" && grep -q 'fancy' "$dir/on" || { fail "its parameters are not listed"; cat "$dir/on"; }
mixed="mixed:reactive_per_min=6,proactive_per_min=12"
for seed in 1 2 3; do
    run "seed $seed" --policy "$asks:share=7.5,kind=last" --workload "$mixed,duration_s=60" --seed $seed
done
run "agents" --policy "$asks" --workload leader-subagents --seed 4
for what in form launch preempt cancel compile drop kv kv_rank map occupy shed timer; do
    cat "$dir"/*.log | cut -d' ' -f3 | grep -qx $what || fail "it never did $what: the test tests less than it says"
done

# A judge's runs from the second on are forks of a process that waits. There are three runs and two
# forks, with the scores of runs that start in one process.
cat >"$dir/suite.json" <<'END'
{"name": "few", "suite": {"about": "a few short runs", "references": ["fcfs"], "unscored": []}, "base": {"seed": 1},
 "rows": [{"point": "one", "soc": "core-ultra-5-125h", "llm": "llama-3.2-3b",
           "workload": "mixed:reactive_per_min=6,proactive_per_min=12,duration_s=30"}],
 "replications": 3, "metrics": ["reactive.e2e_s.mean"]}
END
"$x" arena judge "$asks" --suite "$dir/suite.json" --jobs 1 -q --json >"$dir/judged" 2>"$dir/err" || { fail "judge"; cat "$dir/err"; }
[ "$(grep -c '^asks: a fork$' "$dir/err")" -eq 2 ] || fail "$(grep -c 'a fork' "$dir/err") forks of 3 runs, wanted 2"
"$x" compare --policy "$asks" --policy fcfs --soc core-ultra-5-125h --llm llama-3.2-3b --workload "$mixed,duration_s=30" --seed 1 \
    --replications 3 --jobs 1 --json -q >"$dir/compared" 2>"$dir/err" || { fail "compare"; cat "$dir/err"; }
grep -q 'a fork' "$dir/err" && fail "forks in one process"
value=$(sed -n 's/.*"value":[^0-9]*\([0-9.]*\).*/\1/p' "$dir/judged")
[ -n "$value" ] && grep -qF "$value" "$dir/compared" || fail "forks score $value, which one process does not"

# This policy keeps both promises, so that its calls and the ends of its passes come late. It is the
# skeleton of `new-policy`. In a process of its own it decides the same as fcfs here, also where
# requests are cancelled.
skeleton=$dir/skeleton.so
"${CC:-gcc}" -std=c17 -D_POSIX_C_SOURCE=200809L -O1 -fPIC -shared -I. -o "$skeleton" policies/skeleton/skeleton.c ||
    fail "the skeleton does not compile"
for load in "$mixed,duration_s=120" leader-subagents; do
    XPUSIM_JAIL=on "$x" run --policy "$skeleton" --workload "$load" --seed 2 --decisions "$dir/on.log" >/dev/null 2>"$dir/err" ||
        { fail "skeleton, $load:"; cat "$dir/err"; }
    "$x" run --policy fcfs --workload "$load" --seed 2 --decisions "$dir/off.log" >/dev/null 2>&1
    head -n 1 "$dir/on.log" | grep -qx 'policy skeleton flags=12' || fail "the log begins with $(head -n 1 "$dir/on.log")"
    sed 1d "$dir/on.log" >"$dir/on"
    sed 1d "$dir/off.log" | cmp - "$dir/on" || fail "skeleton, $load: it decides other than fcfs"
done

# A late call is a hook, too, and an action in it is refused. (In this process it is counted, too.)
acts=$dir/acts.so
sed '/^static void skeleton_pass_done/,/^}/s/    p->pass = NULL;/&\n    if (sched_set_timer(s, s->now_ns + 1) == 0) {\n        sched_give_up(s, "an action in a hook");\n    }/' \
    policies/skeleton/skeleton.c >"$dir/acts.c"
"${CC:-gcc}" -std=c17 -D_POSIX_C_SOURCE=200809L -O1 -fPIC -shared -I. -o "$acts" "$dir/acts.c" || fail "the policy that acts in a hook does not compile"
grep -q 'an action in a hook' "$dir/acts.c" || fail "the skeleton has another pass_done"
XPUSIM_JAIL=on "$x" run --policy "$acts" --workload "$mixed,duration_s=60" --trouble '' >"$dir/on" 2>"$dir/on.err" ||
    { fail "an action in a hook is done:"; cat "$dir/on.err"; }

both "it gives up" run --policy "$asks:tires=true" --workload "$mixed,duration_s=60" --trouble ''
grep -q 'it has had enough' "$dir/on.err" || { fail "why it gave up is not told"; cat "$dir/on.err"; }
for kind in 1 2 3 4 5 6 7 8 9; do
    XPUSIM_JAIL=on "$x" run --policy "$asks:nonsense=$kind" --workload "$mixed,duration_s=30" --trouble '' >"$dir/out" 2>"$dir/err"
    [ $? -eq 1 ] && grep -q 'asked for what there is not, or what it never was given' "$dir/err" ||
        { fail "nonsense $kind is taken"; cat "$dir/err"; }
done
exit $bad
