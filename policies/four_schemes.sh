#!/bin/sh
# The four schemes of the first paper over load: the tables of policies/README.md on stdout, as
# Markdown (`sh policies/four_schemes.sh`; REPLICATIONS, JOBS, RATES). The same requests for all schemes of a
# column.
set -eu
cd "$(dirname "$0")/.."
x=${BUILD:-build}/xpusim
replications=${REPLICATIONS:-20}
rates=${RATES:-1 2 3 4 6 8 12 16} # reactive a minute; twice as many proactive ones
tmp=$(mktemp)
trap 'rm -f "$tmp"' EXIT

for rate in $rates; do
    "$x" compare --quiet --replications "$replications" --jobs "${JOBS:-2}" --baseline orca \
        --policy recompute-preempt --policy time-share --policy orca \
        --policy agent-xpu-v1:affinity=strict --policy agent-xpu-v1:pressure=intensity \
        --policy agent-xpu-v2 --metric reactive.e2e_s.mean --metric proactive.e2e_s.mean \
        --metric all.throughput_req_per_min \
        --workload "mixed:reactive_per_min=$rate,proactive_per_min=$((2 * rate)),duration_s=900" |
        sed "s/^/$((3 * rate)) /"
done >"$tmp"

# Columns are loads, in the order in which they came; a cell is the mean and half its interval.
table() { # metric
    awk -v metric="$1" '
        NF == 2 && $2 ~ /^(all|reactive|proactive)\./ { now = $2 }
        now == metric && $2 !~ /,$/ && match($0, /\[[^]]*\]/) {
            if (!($1 in loads)) { loads[$1] = 1; load[++n] = $1 }
            if (!($2 in names)) { names[$2] = 1; name[++k] = $2 }
            split(substr($0, RSTART + 1, RLENGTH - 2), end, /, /)
            half = (end[2] - end[1]) / 2
            cell[$2, $1] = sprintf(half < 99.5 ? "%s ± %.2g" : "%s ± %.0f", $3, half)
        }
        END {
            printf "| scheme |"
            for (i = 1; i <= n; i++) { printf " %s |", load[i] }
            printf "\n|---|"
            for (i = 1; i <= n; i++) { printf "---|" }
            printf "\n"
            for (j = 1; j <= k; j++) {
                printf "| `%s` |", name[j]
                for (i = 1; i <= n; i++) { printf " %s |", cell[name[j], load[i]] }
                printf "\n"
            }
        }' "$tmp"
}

printf 'Reactive end-to-end latency, s, by requests per minute:\n\n'
table reactive.e2e_s.mean
printf '\nProactive end-to-end latency, s:\n\n'
table proactive.e2e_s.mean
printf '\nRequests completed per minute, first arrival to last finish:\n\n'
table all.throughput_req_per_min
