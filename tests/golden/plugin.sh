#!/bin/sh
# A policy comes from outside the tree: the skeleton of `new-policy`, built against installed
# headers. It must do exactly the same as fcfs under run and compare. A plug-in that cannot be
# loaded or written is refused.
set -u
cd "$(dirname "$0")/../.." || exit 2
build=${BUILD:-build}
x=$(cd "$build" && pwd)/xpusim
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
bad=0
load="mixed:reactive_per_min=2,proactive_per_min=2,duration_s=120"

fail() {
    echo "FAILED: $*"
    bad=1
}
must() { # command...
    "$@" >"$dir/out" 2>&1 || {
        fail "$*"
        cat "$dir/out"
    }
}
refuse() { # text the message must hold, command...
    want=$1
    shift
    "$@" >"$dir/out" 2>"$dir/err"
    status=$?
    if [ $status -ne 2 ] || ! grep -qF -- "$want" "$dir/err"; then
        fail "(exit $status, wanted 2 and \"$want\"): $*"
        cat "$dir/err"
    fi
}
same() { # plug-in specification, policy: the same life of every request
    must "$x" run --policy "$1" --workload "$load" --seed 2 --requests "$dir/a.csv"
    must "$x" run --policy "$2" --workload "$load" --seed 2 --requests "$dir/b.csv"
    test -s "$dir/a.csv" || fail "$1: no requests"
    grep -v '^#' "$dir/a.csv" >"$dir/a"
    grep -v '^#' "$dir/b.csv" >"$dir/b"
    cmp "$dir/a" "$dir/b" || fail "$1 differs from $2"
}

must make -s install-built BUILD="$build" PREFIX=/usr/local DESTDIR="$dir/stage"
include=$dir/stage/usr/local/include/xpusim

# the skeleton: strict warnings, and no symbol from anywhere but the C library
must "$x" new-policy my-policy -o "$dir/my"
must make -C "$dir/my" XPUSIM_INCLUDE="$include" LDFLAGS=-Wl,--no-undefined \
    CFLAGS='-O2 -Wall -Wextra -Wpedantic -Wconversion -Wshadow -Wmissing-prototypes -Werror'
my=$dir/my/my-policy.so
same "$my" fcfs
same "$my:device=cpu" fcfs:device=cpu
(cd "$dir/my" && "$x" list policy my-policy.so) >"$dir/out" 2>&1 || fail "list policy my-policy.so, without a slash"
grep -q '^my-policy: ' "$dir/out" || fail "list policy: no such line"
must make -C "$dir/my" XPUSIM_INCLUDE="$include" XPUSIM="$x" test
grep -q 'my-policy: ok' "$dir/out" || fail "test.sh does not end with ok"
# the conformance suite takes it like any policy of the tree, and finds one that never launches
must "$x" check-policy "$my"
checks=$(sed -n 's/^.*my-policy.so: \([78]\) of \1 checks hold$/\1/p' "$dir/out") # 7: no jail works here
[ -n "$checks" ] || fail "check-policy: $(tail -1 "$dir/out")"
# a misspelt call is found where it is written, and not when the plug-in is loaded
cp -r "$dir/my" "$dir/misspelt"
sed -i 's/sched_again(s)/sched_agian(s)/' "$dir/misspelt/my-policy.c"
if make -s -C "$dir/misspelt" clean my-policy.so XPUSIM_INCLUDE="$include" >"$dir/out" 2>&1; then
    fail "a plug-in with a misspelt call is built"
fi
grep -q 'my-policy.c:[0-9]*:.*error.*sched_agian' "$dir/out" || fail "a misspelt call has no line: $(head -3 "$dir/out")"
# a launch that is refused is tried again: here every third one is
cp -r "$dir/my" "$dir/third"
sed -i 's/(void)place_whole(s, p->pass, p->device, YIELD_PASS)/static int n; (void)place_whole(s, p->pass, p->device, ++n % 3 != 0 ? YIELD_PASS : (enum yield_point)99)/' "$dir/third/my-policy.c"
must make -s -C "$dir/third" clean my-policy.so XPUSIM_INCLUDE="$include"
must "$x" run --policy "$dir/third/my-policy.so" --workload "$load" --trouble ''
grep -q 'refused' "$dir/out" "$dir/err" || fail "no launch was refused: the test tests nothing"
cp -r "$dir/my" "$dir/lazy"
sed -i 's/(void)place_whole(s, p->pass, p->device, YIELD_PASS)/(void)p/' "$dir/lazy/my-policy.c"
must make -s -C "$dir/lazy" clean my-policy.so XPUSIM_INCLUDE="$include"
refuted() { # plug-in: check-policy exits 1
    (cd "$dir" && "$x" check-policy "$1") >"$dir/out" 2>&1
    [ $? = 1 ]
}
once_more() { # command that was left: exits 1
    (cd "$dir" && sh -c "${1%%xpusim*}$x${1#*xpusim}") >"$dir/again" 2>&1
    [ $? = 1 ]
}
refuted "$dir/lazy/my-policy.so" || fail "a policy that never launches conforms"
grep -q "stalled" "$dir/out" || fail "not found out: a policy that never launches"
again=$(sed -n 's/^ *\(xpusim check-policy .* --trace .*\)/\1/p' "$dir/out" | head -n 1)
once_more "$again" || fail "conforms on the trace that was left: $again"
grep -q "^0 of 1 request finished" "$dir/again" && grep -q "formed and on no device: 1 pass" "$dir/again" ||
    fail "the trace that conformance left does not show it: $(cat "$dir/again")"
[ "$(tail -n 1 "$dir/xpusim-trouble/decisions" | cut -d' ' -f3)" = form ] || fail "no decisions of the load that failed"
# so is one that remembers what it did in another run, by each of the three comparisons of two runs
cp -r "$dir/my" "$dir/remembers"
sed -i 's/    p->device = (uint8_t)d;/&\n    static unsigned runs; timers = runs++ % 2;/; 0,/^static/s//static unsigned timers;\n&/
    s/    if (formed && .*/    if (timers > 0) { timers = 0; (void)sched_set_timer(s, s->now_ns + 1); }\n&/' "$dir/remembers/my-policy.c"
cmp -s "$dir/my/my-policy.c" "$dir/remembers/my-policy.c" && fail "remembers: the skeleton did not change"
must make -s -C "$dir/remembers" clean my-policy.so XPUSIM_INCLUDE="$include"
refuted "$dir/remembers/my-policy.so" || fail "a policy that remembers conforms"
for pair in collapsed repeated hidden; do
    again=$(sed -n "s/^ *\(xpusim check-policy .* --pair $pair --trace .*\)/\1/p" "$dir/out" | head -n 1)
    [ -n "$again" ] || { fail "remembers: no command for $pair"; continue; }
    once_more "$again" || fail "remembers: alike on the trace that was left: $again"
    grep -q "differ" "$dir/again" || fail "remembers: not told in what: $(cat "$dir/again")"
done
# One policy promises something false. The calls of schedule that SLEEPS spares count for it, so a
# process of its own shows the fault.
if [ "$checks" = 8 ]; then
    cp -r "$dir/my" "$dir/promises"
    sed -i 's/^struct .* { \/\* zeroed.*/&\n    unsigned calls;/
        s/^    sched_again(s);.*/&\n    if (++p->calls % 7 == 0) {\n        (void)sched_set_timer(s, s->now_ns + 1);\n    }/' "$dir/promises/my-policy.c"
    must make -s -C "$dir/promises" clean my-policy.so XPUSIM_INCLUDE="$include"
    refuted "$dir/promises/my-policy.so" || fail "a policy with a false promise conforms"
    grep -q "7 of 8 checks hold" "$dir/out" || fail "false promise: $(tail -1 "$dir/out")"
    again=$(sed -n "s/^ *\(xpusim check-policy .* --pair confined --trace .*\)/\1/p" "$dir/out" | head -n 1)
    once_more "$again" || fail "promises: equal on the trace that was left: $again"
    sed -i 's/POLICY_F_LATE | POLICY_F_SLEEPS/POLICY_F_LATE/' "$dir/promises/my-policy.c"
    must make -s -C "$dir/promises" clean my-policy.so XPUSIM_INCLUDE="$include"
    must "$x" check-policy "$dir/promises/my-policy.so"
else
    echo "skipped: a false promise is not found out where no jail works, or under the address sanitizer"
fi
# fcfs and its copy finish the same requests at the same times in every replication
must "$x" compare --policy fcfs --policy "$my" --policy "$my:device=cpu" --replications 2 \
    --workload "$load" --metric all.e2e_s.mean --quiet
grep -F "$my " "$dir/out" | grep -q identical || fail "compare tells fcfs from its copy"
grep -qF "$my:device=cpu" "$dir/out" || fail "compare lost the second use of one plug-in"
# a source tree serves as well as installed headers; a name that is a keyword or a type compiles
must "$x" new-policy sched -o "$dir/sched"
must make -C "$dir/sched" XPUSIM_INCLUDE="$PWD"
# without it, of the tree or the prefix of the program that is found; elsewhere it says what to set
mkdir -p "$dir/tree/build" "$dir/alone"
ln -s "$PWD/sim" "$PWD/policies" "$dir/tree"
cp "$x" "$dir/tree/build" && cp "$x" "$dir/alone"
for at in tree/build stage/usr/local/bin; do
    must make -C "$dir/sched" clean
    must env PATH="$dir/$at:$PATH" make -C "$dir/sched"
done
must make -C "$dir/sched" clean
refuse "put xpusim in PATH, or make XPUSIM=.../xpusim, or XPUSIM_INCLUDE=FOLDER" env PATH="$dir/alone:$PATH" make -C "$dir/sched"

plugin() { # name, sed script: another policy from the skeleton
    sed "s/\"my-policy\"/\"$1\"/; $2" "$dir/my/my-policy.c" >"$dir/$1.c"
    must "${CC:-gcc}" -std=c17 -D_POSIX_C_SOURCE=200809L -fPIC -shared -I"$include" -w \
        -o "$dir/$1.so" "$dir/$1.c"
}
run="$x run --workload $load --policy"

# a helper that allocates takes xrealloc from the program
plugin allocates 's/^#include "policies.common.place.h"/&\n#include "policies\/common\/batch.h"/
    s/struct pass_spec spec/struct batch b = {0}; batch_add(\&b, r, segment.role, 1); batch_fini(\&b);&/'
same "$dir/allocates.so" fcfs

refuse "cannot read: No such file" $run "$dir/none.so"
refuse "cannot read: No such file" $x compare --policy fcfs --policy "$dir/none.so:device=cpu"
refuse "cannot read: No such file" $x list policy "$dir/none.so"
refuse "plug-ins by a path" $run "$dir/my/my-policy.c"
echo "not an object" >"$dir/text.so"
refuse "cannot load" $run "$dir/text.so"
mkdir "$dir/folder.so"
refuse "cannot read" $run "$dir/folder.so"
plugin nosymbol 's/xpusim_policy/another_name/'
refuse "no function xpusim_policy" $run "$dir/nosymbol.so"
# a default that the parameter itself could not have, of a choice behind its end
plugin nochoice 's/"device", 0,/"device", 99,/'
refuse "parameter device: its default is none of its values" $run "$dir/nochoice.so"
plugin toosmall 's/{.name = NULL}/POLICY_NUMBER("age", -1.0, 0.0, 9.0, "none"), &/'
refuse "parameter age: its default is none of its values" $run "$dir/toosmall.so"
plugin twice 's/{.name = NULL}/POLICY_NUMBER("age", 1.0, 0.0, 9.0, "one"), POLICY_NUMBER("age", 1.0, 0.0, 9.0, "two"), &/'
refuse "--policy $dir/twice.so: parameter age: two have this name" $run "$dir/twice.so"
# A plug-in that harms itself is reported by name, and costs its own run only. A failed run leaves the smallest trace behind,
# and the command that it prints shows the same again.
elsewhere() { # plug-in, what must be told: the commands that run policies one by one tell it as run does; at once, as some wait
    n=0
    for how in "explain --request 0" "explain --interference" "diff --b-policy fcfs" "bisect --b-policy fcfs --max-tests 1 -o $dir/$1.small"; do
        n=$((n + 1))
        echo "$how" >"$dir/how$n"
        # shellcheck disable=SC2086
        {
            "$x" $how --policy "$dir/$1.so" --workload "$load" --time-limit 2 --json >"$dir/out$n" 2>"$dir/err$n"
            echo $? >"$dir/status$n"
        } &
    done
    wait
    for n in 1 2 3 4; do
        how=$(cat "$dir/how$n")
        [ "$(cat "$dir/status$n")" = 1 ] || [ "${how%% *}" = bisect ] || fail "$1 under $how: exit status"
        grep -q "policy [^ ]*$1.so: the run did not end: .*$2" "$dir/out$n" "$dir/err$n" || { fail "$1 under $how: not told:"; cat "$dir/out$n" "$dir/err$n"; }
    done
}
breaks() { # name, what the message must say, what schedule does after 5 s, then what is left, and a limit of seconds
    sed "s/    if (formed && .*/    if (s->now_ns > 5000000000) { $3 }\n&/; s/\"my-policy\"/\"$1\"/; 1i #include <stdlib.h>\n#include <stdio.h>\n#include <unistd.h>" \
        "$dir/my/my-policy.c" >"$dir/$1.c"
    must "${CC:-gcc}" -std=c17 -D_POSIX_C_SOURCE=200809L -fPIC -shared -I"$include" -w -o "$dir/$1.so" "$dir/$1.c"
    $run "$dir/$1.so" --time-limit "${5:-2}" --trouble "$dir/trouble-$1" --requests "$dir/$1.csv" --timeline "$dir/$1.json" \
        >"$dir/out" 2>"$dir/err"
    [ $? -eq 1 ] || fail "$1: exit status"
    [ -s "$dir/out" ] && fail "$1: it printed results"
    grep -q "$1.*$2" "$dir/err" || { fail "$1: not told:"; cat "$dir/err"; }
    [ -z "$(find "$dir" -name "$1.csv.*" -o -name "$1.json.*")" ] || fail "$1: half a file is left"
    left=$(cd "$dir/trouble-$1" 2>/dev/null && echo *)
    [ "$left" = "$4" ] || fail "$1: left behind: $left"
    [ -z "$4" ] && return
    [ "$(grep -c '^[0-9]' "$dir/trouble-$1/trace.csv")" = 1 ] || fail "$1: one request is enough"
    again=$(sed -n 's/^  xpusim //p' "$dir/err")
    sh -c "$x $again --trouble ''" >"$dir/out" 2>"$dir/err" && fail "$1: not shown again by: $again"
    grep -q "$1.*$2" "$dir/err" || { fail "$1: shown again, but not told:"; cat "$dir/err"; }
}
breaks crashes "killed by signal" "abort();" "decisions trace.csv"
if grep -q __asan_init "$x"; then
    echo "skipped: a plug-in that writes to nowhere, of which the address sanitizer tells itself"
else
    breaks writes-to-nowhere "killed by signal" "*(volatile int *)0 = 1;" "decisions trace.csv"
fi
elsewhere crashes "killed by signal"
# Its checks end without a word of their own. Each line below them runs the load again that was on.
sed 's/    if (formed && .*/    if (p->waiting.n > 3) { abort(); }\n&/; s/"my-policy"/"crowd"/; 1i #include <stdlib.h>' "$dir/my/my-policy.c" >"$dir/crowd.c"
must "${CC:-gcc}" -std=c17 -D_POSIX_C_SOURCE=200809L -fPIC -shared -I"$include" -w -o "$dir/crowd.so" "$dir/crowd.c"
$x check-policy "$dir/crowd.so" --loads 3 >"$dir/out" 2>"$dir/err"
[ "$(grep -c 'killed by signal 6' "$dir/out")" = "$(grep -c 'xpusim check-policy .*crowd.so --load [0-9]' "$dir/out")" ] ||
    fail "a check that crashed does not say on which load: $(cat "$dir/out")"
sed -n 's/^ *xpusim check-policy //p' "$dir/out" >"$dir/again"
[ -s "$dir/again" ] || fail "nothing crashed: $(cat "$dir/out")"
while read -r again; do
    sh -c "$x check-policy $again" >"$dir/out" 2>"$dir/err"
    grep -q 'killed by signal 6' "$dir/err" || fail "no crash by: $again"
done <"$dir/again"
breaks exits "ended with status 0" "exit(0);" "decisions trace.csv"
elsewhere exits "ended with status 0"
# Its processor time ends it, unless a busy machine gives it less than that in ten times as long.
# Then the clock does.
times >"$dir/before" # of this shell, and of all that it waited for: no subshell has these
breaks loops '\(1 s of CPU time\|did not return within 10 s\)' "for (;;) {}" "" 1
times >"$dir/after"
if grep -q "did not return" "$dir/err"; then
    sed 's/[ms]/ /g' "$dir/before" "$dir/after" |
        awk '{ s = $1 * 60 + $2 + $3 * 60 + $4 } NR <= 2 { s = -s } { sum += s } END { exit !(sum < 2) }' ||
        fail "loops: it had its 1 s of processor time, and the clock ended it"
    echo "skipped: a policy that loops had less than 1 s of processor time in 10 s"
fi
breaks waits "waited for 2 s" "for (;;) { sleep(1); }" ""
elsewhere waits "waited for 2 s"
breaks refused "timer 1 time, first at" \
    "static int once; if (once++ == 0) { (void)sched_set_timer(s, 0); } return;" "decisions timeline.json trace.csv"
test -s "$dir/refused.json" || fail "a run that stalled has no timeline"
# what it prints is no result: the JSON stays whole, and says so
sed 's/    if (formed && .*/    if (s->epoch < 60) { puts("called"); }\n&/; s/"my-policy"/"prints"/; 1i #include <stdio.h>' \
    "$dir/my/my-policy.c" >"$dir/prints.c"
must "${CC:-gcc}" -std=c17 -D_POSIX_C_SOURCE=200809L -fPIC -shared -I"$include" -w -o "$dir/prints.so" "$dir/prints.c"
$run "$dir/prints.so" --json >"$dir/out" 2>"$dir/err" || fail "prints: exit status"
[ "$(head -c 1 "$dir/out")" = "{" ] && grep -q "the policy printed" "$dir/out" || fail "prints: not told, or in the results"
n=$(grep -c '^called$' "$dir/err")
grep -q "printed $((n * 7)) bytes" "$dir/out" && [ "$n" -ge 2 ] || fail "prints: $n lines of 7 bytes are on standard error"
$x compare --policy "$dir/prints.so" --policy fcfs --replications 1 --workload "$load" --json 2>/dev/null >"$dir/out"
[ "$(head -c 1 "$dir/out")" = "{" ] || fail "prints: in the results of compare"
for how in "explain --request 0" "explain --interference" "diff"; do # nor there
    # shellcheck disable=SC2086
    "$x" $how --policy "$dir/prints.so" --workload "$load" --json >"$dir/out" 2>"$dir/err" || fail "prints under $how: exit status"
    [ "$(head -c 1 "$dir/out")" = "{" ] && ! grep -q '^called$' "$dir/out" && grep -q "prints.so printed [0-9]* bytes" "$dir/err" ||
        fail "prints under $how: not told, or in the results"
done
# one that was cut is called so, wherever it was cut
size=$(wc -c <"$my")
for n in 100 1000 $((size / 2)) $((size - 1)); do
    head -c "$n" "$my" >"$dir/cut.so"
    $run "$dir/cut.so" >"$dir/out" 2>&1
    [ $? = 2 ] && grep -q 'cut.so: it ends too soon: it was cut, or is being written' "$dir/out" || fail "$n bytes: $(cat "$dir/out")"
done
# a plug-in that is overwritten while it runs does not notice
cp "$my" "$dir/overwritten.so"
($run "$dir/overwritten.so" --set sim.collapse=false >"$dir/whole" 2>&1; echo $? >"$dir/status") &
overwritten=$!
while kill -0 $overwritten 2>/dev/null; do : >"$dir/overwritten.so"; cp "$my" "$dir/overwritten.so"; done
wait $overwritten
case $(cat "$dir/status") in 0 | 2) ;; *) fail "overwritten while it ran: exit $(cat "$dir/status")"; cat "$dir/whole" ;; esac
# plug-ins of other headers: of version 1, of a later one, and of members put in between
for form in NONE PRESETS; do
    must "${CC:-gcc}" -std=c17 -fPIC -shared -D$form -o "$dir/$form.so" tests/golden/contract1.c
    refuse "version 1 or older" $run "$dir/$form.so"
    refuse "version 1 or older" $x compare --policy fcfs --policy "$dir/$form.so"
    refuse "version 1 or older" $x list policy "$dir/$form.so"
done
older() { # name, header, sed script: the skeleton against headers that were changed so
    rm -rf "$dir/older" && cp -r "$include" "$dir/older"
    sed -i "$3" "$dir/older/sim/api/$2"
    cmp -s "$include/sim/api/$2" "$dir/older/sim/api/$2" && fail "$1: the header did not change"
    sed "s/\"my-policy\"/\"$1\"/" "$dir/my/my-policy.c" >"$dir/$1.c"
    must "${CC:-gcc}" -std=c17 -D_POSIX_C_SOURCE=200809L -fPIC -shared -I"$dir/older" -w \
        -o "$dir/$1.so" "$dir/$1.c"
}
older version policy.h 's/^#define POLICY_API_VERSION .*/#define POLICY_API_VERSION 99/'
refuse "policy API version 99" $run "$dir/version.so"
refuse "policy API version 99" $x list policy "$dir/version.so"
older last policy.h 's/^#define POLICY_API_VERSION .*/#define POLICY_API_VERSION 4/'
refuse "policy API version 4; this xpusim has version 5" $run "$dir/last.so"
older action calls.def '/^CALL(int, pass_cancel,/i CALL(int, between, (struct sched *s), (s))'
refuse "its struct sched_api has" $run "$dir/action.so"
older hook policy.h '/(\*pass_done)(/i void (*between)(struct sched *s);'
refuse "its struct policy_ops has" $run "$dir/hook.so"
older member request.h '/^    uint32_t turn;/i uint32_t between, more;'
refuse "its struct request has" $run "$dir/member.so"
older order policy.h 's/^#define POLICY_LAYOUT .*/#define POLICY_LAYOUT 1u/'
refuse "layout 1, here" $run "$dir/order.so"
# structs of shared helpers are part of the layout: a plug-in with others would hand over the wrong members
copy=$dir/copy
mkdir -p "$copy/sim/record" "$copy/sim/base" "$copy/policies/python/xpusim" "$copy/docs"
cp -r sim/api "$copy/sim" && cp -r policies/common "$copy/policies"
for f in sim/record/generate.py sim/base/words.c sim/base/map.h policies/python/xpusim/fields.py docs/policy-protocol.md; do
    cp "$f" "$copy/$f"
done
if command -v python3 >/dev/null 2>&1; then
    must python3 "$copy/sim/record/generate.py" --check
    sed -i 's/^    void (\*refresh)/    void (*between)(struct sched *s);\n&/' "$copy/policies/common/iter.h"
    python3 "$copy/sim/record/generate.py" --check | grep -q "^sim/api/policy.h is older" ||
        fail "a struct of iter.h changed, and the layout did not"
fi
# One plug-in that describes itself in every wrong way: a compilation takes a tenth of a second.
cat >"$dir/broken.h" <<'END'
    const char *how = getenv("BROKEN");
    if (strcmp(how, "fcfs") == 0 || strcmp(how, "Bad name") == 0) ops.name = how;
    if (strcmp(how, "unnamed") == 0) ops.name = NULL;
    if (strcmp(how, "no summary") == 0) ops.summary = NULL;
    if (strcmp(how, "no schedule") == 0) ops.schedule = NULL;
    if (strcmp(how, "no arrived") == 0) ops.request_arrived = NULL;
    if (strcmp(how, "bad key") == 0) params[0].name = "De vice";
    if (strcmp(how, "no choices") == 0) params[0].choices = NULL;
    if (strcmp(how, "no help") == 0) params[0].help = NULL;
    if (strcmp(how, "nothing") == 0) return NULL;
END
plugin broken '1i #include <stdlib.h>\n#include <string.h>
    s/^static const \(struct policy_\)/static \1/; s/    return &ops;/#include "broken.h"\n&/'
broken() { # how, what must be said
    refuse "$2" env BROKEN="$1" $run "$dir/broken.so"
}
must env BROKEN=not $run "$dir/broken.so"
broken nothing "returned no policy"
broken fcfs "that of a built-in policy"
broken "Bad name" "must be [a-z0-9-]+"
broken unnamed "must be [a-z0-9-]+"
broken "no summary" "has no summary"
broken "no schedule" "lacks the hook schedule"
broken "no arrived" "lacks the hook request_arrived"
broken "bad key" "parameter 'De vice'"
broken "no choices" "parameter device: it needs a help text, a known type and, for a choice, the choices"
broken "no help" "parameter device: it needs a help text"
plugin unresolved 's/^static int my_my_policy_init/int nowhere(void);\n&/; s/int d = place/int d = nowhere() + place/'
refuse "nowhere" $run "$dir/unresolved.so"
refuse "device=moon" $run "$my:device=moon"
refuse "no parameter is called nokey" $run "$my:nokey=1"

# new-policy: bad names, existing files, places that cannot be written
for name in "" Upper 9lives -x a_b a/b ../up "a b" "$(printf '%041d' 0 | tr 0 a)"; do
    refuse "" "$x" new-policy -o "$dir/refused" -- "$name"
done
refuse "a built-in policy has that name" "$x" new-policy fcfs -o "$dir/refused"
refuse "NAME is missing" "$x" new-policy
refuse "more than 1 NAME" "$x" new-policy one two -o "$dir/refused"
refuse "--help" "$x" new-policy one --nonesuch
refuse "cannot make this folder" "$x" new-policy one -o "$dir/no/such/folder"
refuse "Not a directory" "$x" new-policy one -o "$dir/text.so"
test -e "$dir/refused" && fail "a refused name left a folder"
before=$(cksum "$dir/my/my-policy.c" "$dir/my/Makefile" "$dir/my/test.sh")
refuse "File exists" "$x" new-policy my-policy -o "$dir/my"
refuse "File exists" "$x" new-policy other -o "$dir/my"
test "$before" = "$(cksum "$dir/my/my-policy.c" "$dir/my/Makefile" "$dir/my/test.sh")" ||
    fail "an existing file changed"
test -e "$dir/my/other.c" && fail "a refused skeleton left a file"
exit $bad
