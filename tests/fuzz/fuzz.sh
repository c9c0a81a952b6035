#!/bin/sh
# Coverage-guided fuzzing (libFuzzer) of every reader of tests/helpers/readers.c, one after the
# other, SECONDS in all: make fuzz SECONDS=n. What is learned stays in $BUILD/corpus and is gone on
# from; a finding stays in $BUILD/findings, and its reader is named at the end. Exit 1 with findings.
#
#   fuzz.sh [READER ...]        these only
#   fuzz.sh --keep              the smallest inputs that reach what $BUILD/corpus reaches, into
#                               tests/fuzz/corpus (up to KEEP bytes a reader)
set -u
cd "$(dirname "$0")/../.." || exit 2
b=${BUILD:-build/fuzz}
fuzz=$b/tests/fuzz/fuzz
export ASAN_OPTIONS=allocator_may_return_null=1:detect_odr_violation=0

keep=0
[ "${1:-}" != --keep ] || { keep=1 && shift; }
table=$($fuzz) || exit 2
# shellcheck disable=SC2046 # names
[ $# -gt 0 ] || set -- $(echo "$table" | cut -d' ' -f1)
if [ $keep -eq 1 ]; then
    for r in "$@"; do
        rm -rf "$b/small" && mkdir -p "$b/small" "tests/fuzz/corpus/$r"
        cp "tests/fuzz/corpus/$r"/* "$b/small" 2>/dev/null # what these reach needs no other input
        XPUSIM_READER=$r $fuzz -merge=1 "$b/small" "$b/corpus/$r" >/dev/null 2>&1
        # shellcheck disable=SC2012 # names are hashes
        ls -Sr "$b/small" | while read -r f; do
            size=$(($(cat "tests/fuzz/corpus/$r"/* "$b/small/$f" 2>/dev/null | wc -c)))
            [ "$size" -le "${KEEP:-12000}" ] && cp "$b/small/$f" "tests/fuzz/corpus/$r/"
        done
    done
    exit 0
fi

each=$((${SECONDS_IN_ALL:-60} / $#))
[ "$each" -ge 1 ] || each=1
mkdir -p "$b/findings"
found=0
total=0
for r in "$@"; do
    row=$(echo "$table" | grep "^$r ") || { echo "fuzz: no reader is called $r"; exit 2; }
    shipped=$(echo "$row" | cut -d' ' -f3)
    mkdir -p "$b/corpus/$r"
    [ "$shipped" = - ] || cp "$shipped" "$b/corpus/$r/shipped"
    seeds=tests/fuzz/corpus/$r
    [ -d "$seeds" ] || seeds=
    # shellcheck disable=SC2086 # none, or one folder
    XPUSIM_READER=$r $fuzz "$b/corpus/$r" $seeds -max_total_time="$each" \
        -max_len="$(echo "$row" | cut -d' ' -f2)" -timeout=20 -rss_limit_mb=2048 -print_final_stats=1 -close_fd_mask=1 \
        -artifact_prefix="$b/findings/$r-" -reload=0 >"$b/log" 2>&1
    status=$?
    n=$(sed -n 's/^stat::number_of_executed_units: *//p' "$b/log")
    total=$((total + ${n:-0}))
    cover=$(sed -n 's/.* cov: \([0-9]*\).*/\1/p' "$b/log" | tail -n 1)
    printf '%-14s %10s inputs  %6s edges\n' "$r" "${n:-?}" "${cover:-?}"
    if [ $status -ne 0 ]; then
        cp "$b/log" "$b/findings/$r.log"
        grep -E 'ERROR|SUMMARY|runtime error|xpusim: ' "$b/log" | head -n 5
        found=$((found + 1))
    fi
done
times >"$b/times" # the last line: processor time of what it started, MINUTESmSECONDSs each way
hours=$(tail -n 1 "$b/times" | sed 's/[ms]/ /g' | awk '{ printf "%.3f", ($1 * 60 + $2 + $3 * 60 + $4) / 3600 }')
echo "$total inputs, $hours CPU hours, $found readers with findings ($b/findings)"
[ $found -eq 0 ]
