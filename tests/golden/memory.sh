#!/bin/sh
# Memory that runs out: the k-th allocation fails (tests/helpers/preload/failmalloc.c), in a command
# or in its worker processes. Either nobody needed it, and the bytes are the same with exit 0; or the
# exit status is 3 with a message, and every file that is there is a whole one. Nothing else: no other
# bytes with exit 0, no signal, no other status. Once with that allocation alone, once with all that
# follow, as near a limit of address space.
#
#   MEMORY_STEP=1 sh tests/golden/memory.sh     every k from 1 to MEMORY_MAX (20000), an hour
set -u
cd "$(dirname "$0")/../.." || exit 2
x=$(cd "${BUILD:-build}" && pwd)/xpusim
step=${MEMORY_STEP:-613}
max=${MEMORY_MAX:-20000}
if nm "$x" | grep -q __asan_init; then
    echo "skipped: the address sanitizer has its own malloc"
    exit 0
fi
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
${CC:-gcc} -O1 -shared -fPIC -o "$dir/failmalloc.so" tests/helpers/preload/failmalloc.c -ldl || exit 1
cd "$dir" || exit 2
cat >spec.json <<'JSON'
{"name": "tiny", "base": {"workload": "w1:n=2"}, "axes": {"policy": ["fcfs", "edf"]},
 "replications": 2, "metrics": ["reactive.*"]}
JSON
mkdir out
w="--workload w1:n=2"
k=0 every=
x() { LD_PRELOAD=$dir/failmalloc.so FM_K=$k FM_ALL=$every "$x" "$@"; }
run() { x run --policy agent-xpu-v2 $w --json --quiet --requests out/r.csv --decisions out/d --timeline out/t.json; }
compare() { x compare --policy fcfs --policy edf --baseline fcfs $w --replications 2 --jobs 2 --json --quiet; }
sweep() { x sweep spec.json -o s.db --jobs 2 --export csv --quiet; }
report() { x report --no-figures -o out/r.html compare.json; }

try() {
    rm -f out/* s.db*
    "$1" >stdout 2>stderr
}

# Files in out/ that are not as in want/.
halves() {
    for f in out/*; do
        [ -e "$f" ] && ! cmp -s "$f" "want/${f#out/}" && echo "$f"
    done
}

judge() { # command status
    case $2 in
    0) cmp -s stdout want.stdout && diff -r out want >/dev/null ;;
    3) read -r said <stderr && [ "${said#*out of memory}" != "$said" ] && { [ -z "$(ls out)" ] || [ -z "$(halves)" ]; } ;;
    *) false ;;
    esac
}

bad=0
compare >compare.json || exit 1
printf '%-8s %-9s %8s %8s %8s %8s\n' command fails tried same exit-3 wrong
for command in ${MEMORY_COMMANDS:-run compare sweep report}; do
    k=0
    try $command || { echo "memory: $command fails by itself"; cat stderr; exit 1; }
    rm -rf want && mv out want && mkdir out && mv stdout want.stdout
    for every in ${MEMORY_EVERY-one all}; do
        [ $every = one ] && every=
        tried=0 same=0 three=0 wrong=0 k=1
        while [ $k -le "$max" ]; do
            try $command
            status=$?
            tried=$((tried + 1))
            if ! judge $command $status; then
                wrong=$((wrong + 1))
                echo "memory: $command, allocation $k${every:+ and all later}: exit $status: $(head -n 1 stderr) $(halves | tr '\n' ' ')"
            elif [ $status -eq 0 ]; then
                same=$((same + 1))
            else
                three=$((three + 1))
            fi
            k=$((k + step))
        done
        printf '%-8s %-9s %8d %8d %8d %8d\n' $command "k-th${every:+ on}" $tried $same $three $wrong
        bad=$((bad + wrong))
    done
done
[ $bad -eq 0 ]
