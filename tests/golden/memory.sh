#!/bin/sh
# Memory runs out: the k-th allocation fails (tests/helpers/preload/failmalloc.c), in a command or
# in its worker processes. Either it was not needed, and the bytes are the same with exit 0. Or the
# exit status is 3 with a message, and every file that is there is a whole one. All else is a fault:
# other bytes with exit 0, a signal, another status. This runs once with that allocation alone, and
# once with all that follow, as near a limit of address space. It also runs once with each of the
# few that make a block smaller. failtable.h says how each k is tried and judged.
#
#   MEMORY_STEP=1 sh tests/golden/memory.sh     every k from 1 to MEMORY_MAX (20000), or as many as there are
set -u
cd "$(dirname "$0")/../.." || exit 2
x=$(cd "${BUILD:-build}" && pwd)/xpusim
step=${MEMORY_STEP:-$([ -n "${WHOLE:-}" ] && echo 149 || echo 797)} # WHOLE: as CI says
max=${MEMORY_MAX:-20000}
if grep -q __asan_init "$x"; then
    echo "skipped: the address sanitizer has its own malloc"
    exit 0
fi
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
${CC:-gcc} -O1 -shared -fPIC -o "$dir/failmalloc.so" tests/helpers/preload/*.c -ldl || exit 1
cd "$dir" || exit 2
cat >spec.json <<'JSON'
{"name": "tiny", "base": {"workload": "w1:n=2"}, "axes": {"policy": ["fcfs", "edf"]},
 "replications": 2, "metrics": ["reactive.*"]}
JSON
mkdir out scratch
w="--workload w1:n=2"
range=0 all='' less=''
x() { LD_PRELOAD=$dir/failmalloc.so FM_TABLE=$range FM_ALL=$all FM_LESS=$less FM_NAME="$command" "$x" "$@"; }
run() { x run --policy agent-xpu-v2 $w --json --quiet --requests out/r.csv --decisions out/d --timeline out/t.json; }
compare() { x compare --policy fcfs --policy edf --baseline fcfs $w --replications 2 --jobs 2 --json --quiet; }
sweep() { x sweep spec.json -o scratch/s.db --jobs 2 --export csv --quiet; }
report() { x report --no-figures -o out/r.html compare.json; }

bad=0
range='' command=compare
compare >compare.json || exit 1
printf '%-8s %-9s %11s %8s %8s %8s %8s\n' command fails allocations tried same exit-3 wrong
for command in ${MEMORY_COMMANDS:-run compare sweep report}; do
    range=
    rm -rf out scratch && mkdir out scratch # whole files of the command before may be there
    $command >want.stdout 2>stderr || { echo "memory: $command fails by itself"; cat stderr; exit 1; }
    rm -rf want && mv out want && mkdir out
    for every in ${MEMORY_EVERY-one all less}; do
        range=1:$max:$step all='' less=''
        case $every in
        all) all=yes ;;
        less) range=1:$max:1 less=yes ;;
        esac
        $command >table
        status=$?
        [ $status -le 1 ] || { cat table; echo "memory: $command: no table"; exit 1; }
        sed '$d' table
        # shellcheck disable=SC2046 # five numbers
        printf '%-8s %-9s %11d %8d %8d %8d %8d\n' "$command" "k-th${all:+ on}${less:+ less}" $(tail -n 1 table)
        bad=$((bad + status))
    done
done
[ $bad -eq 0 ]
