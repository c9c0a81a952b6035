#!/bin/sh
# This test detects changes: it compares recorded outputs, byte by byte (fingerprints carry the
# revision, which is cut). Correctness is shown elsewhere. golden.sh --update shows the differences,
# then records the outputs again.
set -u
cd "$(dirname "$0")/../.." || exit 2
x=${BUILD:-build}/xpusim
. tests/helpers/policies.sh
update=no
[ "${1:-}" = --update ] && update=yes
status=0
out=$(mktemp)
trap 'rm -f "$out"' EXIT

check() { # name, command...
    name=$1
    shift
    "$@" 2>&1 | sed -E 's/xpusim [0-9.]+ [^ "]+/xpusim/; s/-?nan/nan/g' >"$out"
    golden=tests/golden/$name.txt
    if cmp -s "$out" "$golden"; then
        return
    fi
    echo "golden: $name differs:"
    diff -u "$golden" "$out" | head -n 40
    if [ $update = yes ]; then
        cp "$out" "$golden"
    else
        status=1
    fi
}

small="mixed:reactive_per_min=6,proactive_per_min=12,duration_s=120"
for p in $(policies); do
    # shellcheck disable=SC2046
    check "run-$p" "$x" run --policy "$p" $(machine_of "$p") --workload "$small" --seed 3
done
check steady "$x" run --policy fcfs --workload "mixed:reactive_per_min=2,proactive_per_min=2,duration_s=12000" --steady
check steady-overloaded "$x" run --policy fcfs --workload "mixed:reactive_per_min=6,proactive_per_min=12,duration_s=600" --steady
check search "$x" search --policy fcfs --policy llf --workload "mixed:reactive_per_min=2,proactive_per_min=1,duration_s=1800" --ttft-slo 4 --tpot-slo 0.1 --slo "reactive.slo_attainment_frac>=0.7" --slo "reactive.e2e_s.p90<=40" --replications 5 --precision 0.5
check compare "$x" compare --policy openvino-cb --policy agent-xpu-v2 --workload "$small" --replications 4 --jobs 2
check regret "$x" compare --policy fcfs --policy agent-xpu-v2 --workload "mixed:reactive_per_min=3,proactive_per_min=6,duration_s=30" --replications 3 --regret --metric all.e2e_s.mean --jobs 2
check tune "$x" compare --policy fcfs --policy sarathi:device=igpu --workload "$small" --replications 3 --tune 8 --tune-replications 2 --metric reactive.e2e_s.mean --jobs 2
check graphics "$x" run --policy agent-xpu-v2 --workload "$small" --seed 3 --set sim.graphics.frames_per_s=60
check trace "$x" trace gen --workload "mixed:sessions=1,reactive=mtrag,proactive=proactivebench,duration_s=60,arrival=gamma" --seed 5
check kernels "$x" list kernels --llm llama-3.1-8b
check graphs "$x" graphs --p 10,10,10,10,10,10 --d 11,11,11,11,11,11 --s 20,20,20,20,20,20 --chunks 2
check claims "$x" claims A6 A7 A8 B17 B18 B19 B20 D16 D18 D22 --replications 2
check explain "$x" explain --request 9 --policy agent-xpu-v2 --workload "$small" --seed 3
check interference "$x" explain --interference --policy agent-xpu-v2 --workload "$small" --seed 3
check characterize "$x" characterize corun chunk mixed --csv
exit $status
