#!/bin/sh
# A twelfth of a thousand requests (WHOLE=yes: all of them) run under every policy. Loads are half,
# nine tenths and one and a half times the capacity of one request at a time on the iGPU (about 9.3
# a minute of this mix). Each run drains and its audit is clean, or xpusim says why and this fails.
# sd-npu needs another machine (fixed graphs). Then come conversations with long prefixes in little
# memory, where co-serving policies once ran in circles: an aborted iteration was formed again at
# once, and one never fitted.
set -u
cd "$(dirname "$0")/../.." || exit 2
x=${BUILD:-build}/xpusim
status=0
. tests/helpers/policies.sh
policies=$(policies)
# One of so many requests is kept. CI asks for all of them (WHOLE) of the usual build. A sanitizer
# costs fifteen times the time, and a policy has run its lines after some twenty requests.
part=12
little=40 # seconds of conversations
[ -z "${SANITIZED:-}" ] || part=16 little=20
[ -z "${WHOLE:-}" ] || part=1 little=180
for load in "1.55 3.1 12900" "2.8 5.6 7150" "4.65 9.3 4300"; do
    # shellcheck disable=SC2086
    set -- $load
    w="mixed:reactive_per_min=$1,proactive_per_min=$2,duration_s=$(($3 / part))"
    for policy in $policies; do
        [ "$policy" = sd-npu ] && continue
        if ! "$x" run --policy "$policy" --workload "$w" --seed 1 --quiet >/dev/null; then
            echo "stress: $policy fails with $w"
            status=1
        fi
    done
done
w=mixed:reactive_per_min=6,proactive_per_min=12,duration_s=$little,sessions=1,reactive=mtrag,proactive=proactivebench
for policy in $policies; do
    for where in "core-ultra-5-125h 4" "snapdragon-8gen3 17"; do
        # shellcheck disable=SC2086
        set -- $where
        [ "$policy $1" = "sd-npu core-ultra-5-125h" ] && continue
        if ! timeout 900 "$x" run --policy "$policy" --soc "$1" --workload $w --set sim.kv_capacity_tokens=9000 \
            --seed "$2" --quiet >/dev/null; then
            echo "stress: $policy fails on $1 with little memory, seed $2"
            status=1
        fi
    done
done
exit $status
