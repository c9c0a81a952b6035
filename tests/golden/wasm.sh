#!/bin/sh
# The simulator in a page is the program: under node its output is the program's, byte for byte, for policies, seeds, loads,
# models and machines; what it cannot do is refused by name. The program runs as on this processor and as on one without fused
# multiply-add, where the C library's exp and log differ in the last digit (sim/base/portable.h).
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
same() {
    "$x" compare "$@" --json --quiet >"$dir/native" 2>"$dir/native.err"
    status=$?
    GLIBC_TUNABLES=$no_fma "$x" compare "$@" --json --quiet >"$dir/other" 2>/dev/null
    cmp "$dir/native" "$dir/other" || fail "other bytes without fused multiply-add: $*"
    node tests/helpers/wasm.js "$wasm" compare "$@" --json --quiet >"$dir/page" 2>"$dir/page.err"
    got=$?
    [ $got -eq $status ] || fail "(exit $got, natively $status) $*: $(head -c 300 "$dir/page.err")"
    plain "$dir/native" >"$dir/a"
    plain "$dir/page" >"$dir/b"
    [ $status -ne 0 ] || [ -s "$dir/a" ] || fail "no output: $*"
    cmp "$dir/a" "$dir/b" && cmp "$dir/native.err" "$dir/page.err" || fail "other bytes: $*"
}
w=mixed:reactive_per_min=3,proactive_per_min=6,duration_s=900
for seed in 1 7 123456789; do
    same --policy openvino-cb --policy fcfs --policy agent-xpu-v2 --workload $w --replications 4 --seed $seed
    same --policy openvino-cb --policy agent-xpu-v1 --workload $w --replications 3 --load 0.35,0.9,1.2 --seed $seed
done
same --policy edf --policy srpt --policy hhpf --policy llama-cpp --workload coding-agent --llm qwen3-4b:bits=4 --soc core-ultra-7-258v --replications 2
same --policy edf --policy time-share --workload leader-subagents --llm leader=llama-3.1-8b --llm subagent=llama-3.2-3b --replications 2
same --policy fcfs --policy edf --workload $w --set sim.contention=none --replications 3 --quantile 97.5
same --policy nonesuch --workload $w
same --policy fcfs --workload "$w,nonesuch=1"
node tests/helpers/wasm.js "$wasm" compare --policy fcfs --workload $w --store "$dir/s.db" >/dev/null 2>"$dir/err" && fail "a page has no store"
grep -q "is not in a page" "$dir/err" || fail "what a page has not is not named: $(head -c 300 "$dir/err")"
exit $bad
