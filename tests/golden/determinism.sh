#!/bin/sh
# Bytes are equal from gcc -O2 and clang -O0 (gcc -O0 where there is no clang), from 1 and 2
# workers, from any order of policies, and from a qsort that reverses equal elements. The golden
# files under the sanitizers compare gcc -O1, too.
set -eu
cd "$(dirname "$0")/../.."
build=${BUILD:-build}
x=$build/xpusim
. tests/helpers/policies.sh
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
load="--workload mixed:reactive_per_min=6,proactive_per_min=12,duration_s=$([ -n "${WHOLE:-}" ] && echo 120 || echo 60) --seed 11"

outputs() { # binary, folder
    for p in $(policies); do
        # shellcheck disable=SC2046,SC2086
        "$1" run --policy "$p" $(machine_of "$p") $load --json --requests "$2/$p.csv" --decisions "$2/$p.log" >"$2/$p.json"
    done
    sed -i -E 's/xpusim [0-9.]+ [^ "]+/xpusim/' "$2"/*.json "$2"/*.csv # the revision that was built
}

mkdir "$dir/ref"
outputs "$x" "$dir/ref"
if [ "$build" = build ]; then # another build once, not again under each sanitizer
    if command -v clang >/dev/null 2>&1; then
        other=build/clang
        make -s -j2 clang >/dev/null
    else
        other=build/o0
        make -s -j2 BUILD=build/o0 OPT=-O0 all >/dev/null
        echo "note: no clang here: compared gcc -O0 and -O2 only"
    fi
    mkdir "$dir/other"
    outputs "$other/xpusim" "$dir/other"
    diff -rq "$dir/ref" "$dir/other"
    # Two policies that decide the same lose nothing in every scenario, so that all are equal.
    ties="falsify --policy fcfs --baseline fcfs:device=auto --over workload --budget 60 --workload mixed:duration_s=60"
    ${CC:-gcc} -O2 -shared -fPIC -o "$dir/reversed.so" tests/helpers/preload/reversed_qsort.c
    # shellcheck disable=SC2086
    "$x" $ties >"$dir/kept" 2>&1
    # shellcheck disable=SC2086
    LD_PRELOAD="$dir/reversed.so" "$x" $ties >"$dir/reversed" 2>&1
    cmp "$dir/kept" "$dir/reversed"
    LD_PRELOAD="$dir/reversed.so" sh tests/golden/golden.sh
fi

cmd="$x compare $load --replications 4 --baseline openvino-cb --json"
$cmd --policy openvino-cb --policy agent-xpu-v2 --policy edf --jobs 1 >"$dir/a"
$cmd --policy openvino-cb --policy agent-xpu-v2 --policy edf --jobs 2 >"$dir/b"
cmp "$dir/a" "$dir/b"
# In another order each policy has the same values.
values() { tr -d '\n\t ' <"$1" | grep -o '"agent-xpu-v2":{.*' | cut -c1-2000 | sed 's/"edf".*//; s/"openvino.*//'; }
$cmd --policy edf --policy agent-xpu-v2 --policy openvino-cb --jobs 2 >"$dir/c"
values "$dir/a" >"$dir/va"
values "$dir/c" >"$dir/vc"
test -s "$dir/va"
cmp "$dir/va" "$dir/vc"
echo "same bytes everywhere"
