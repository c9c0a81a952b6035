#!/bin/sh
# The simulator in a page is the program. Under node its output is the program's, byte for byte, for
# policies, seeds, loads, models and machines. An impossible command is refused by name. The program
# runs as on this processor and as on one without fused multiply-add, where the C library's exp and
# log differ in the last digit (sim/base/portable.h).
set -u
cd "$(dirname "$0")/../.." || exit 2
build=$(cd "${BUILD:-build}" && pwd)
x=$build/xpusim
wasm=$build/xpusim.wasm
if [ ! -f "$wasm" ] || ! command -v node >/dev/null; then
    echo "skipped: the simulator for pages was not run: make wasm has not built it, or there is no node"
    exit 0
fi
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
bad=0
fail() {
    echo "FAILED: $*"
    bad=1
}
no_fma=glibc.cpu.hwcaps=-AVX2_Usable,-FMA_Usable,-AVX2,-FMA,-FMA4,-AVX,-AVX_Usable
# The revision is a text of the build: one that is older than the program may still be compared.
plain() { sed -E 's/"version":[[:space:]]*"[^"]*"/"version"/' "$1"; }
n=0
same() {
    n=$((n + 1))
    "$x" compare "$@" --json --quiet >"$dir/native.$n" 2>"$dir/native.err.$n"
    echo $? >"$dir/native.status.$n"
    GLIBC_TUNABLES=$no_fma "$x" compare "$@" --json --quiet >"$dir/other" 2>/dev/null
    cmp "$dir/native.$n" "$dir/other" || fail "other bytes without fused multiply-add: $*"
    echo "compare $* --json --quiet" >>"$dir/page"
}
w=mixed:reactive_per_min=3,proactive_per_min=6,duration_s=900
# Replications and loads are most of this test's time. There are two, and loads of one seed. With
# WHOLE=yes there are three or four, and loads of all.
four=2 three=2
[ -z "${WHOLE:-}" ] || four=4 three=3
for seed in 1 7 123456789; do
    same --policy openvino-cb --policy fcfs --policy agent-xpu-v2 --workload $w --replications $four --seed $seed
    [ -z "${WHOLE:-}" ] && [ $seed != 7 ] ||
        same --policy openvino-cb --policy agent-xpu-v1 --workload $w --replications $three --load 0.35,0.9,1.2 --seed $seed
done
same --policy edf --policy srpt --policy hhpf --policy llama-cpp --workload coding-agent --llm qwen3-4b:bits=4 --soc core-ultra-7-258v --replications 2
same --policy edf --policy time-share --workload leader-subagents --llm leader=llama-3.1-8b --llm subagent=llama-3.2-3b --replications 2
same --policy fcfs --policy edf --workload $w --set sim.contention=none --replications $three --quantile 97.5
same --policy nonesuch --workload $w
same --policy fcfs --workload "$w,nonesuch=1"
echo "compare --policy fcfs --workload $w --store $dir/s.db" >>"$dir/page"

# One page runs all of them.
node tests/helpers/wasm.js "$wasm" "$dir/page" || fail "node: exit $?"
for i in $(seq $n); do
    ran="$(sed -n "${i}p" "$dir/page")"
    cmp "$dir/native.status.$i" "$dir/page.$i.status" || fail "exit $(cat "$dir/page.$i.status"): $ran: $(head -c 300 "$dir/page.$i.err")"
    plain "$dir/native.$i" >"$dir/a"
    plain "$dir/page.$i.out" >"$dir/b"
    [ "$(cat "$dir/native.status.$i")" -ne 0 ] || [ -s "$dir/a" ] || fail "no output: $ran"
    cmp "$dir/a" "$dir/b" && cmp "$dir/native.err.$i" "$dir/page.$i.err" || fail "other bytes: $ran"
done
n=$((n + 1))
[ "$(cat "$dir/page.$n.status")" != 0 ] || fail "a page has no store"
grep -q "is not in a page" "$dir/page.$n.err" || fail "what a page has not is not named: $(head -c 300 "$dir/page.$n.err")"
exit $bad
