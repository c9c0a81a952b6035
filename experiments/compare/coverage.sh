#!/bin/sh
# The measured tables of COVERAGE.md, from what the tests print.
#
#   coverage.sh [FILE]     FILE holds what they printed already
set -eu
cd "$(dirname "$0")/../.."
b=${BUILD:-build}
page=experiments/compare/COVERAGE.md
new=$(mktemp)
trap 'rm -f "$new" "$new.out"' EXIT
if [ $# -gt 0 ]; then
    cp "$1" "$new.out"
else
    export CK_TIMEOUT_MULTIPLIER=20 # time limits are for make check
    COVERAGE_TRIALS=2000 "$b/tests/oracle/check_coverage" >"$new.out"
    AA_TRIALS=4000 "$b/tests/unit/check_compare" >>"$new.out"
fi
sed '/<!-- coverage.sh -->/q' "$page" >"$new"
{
    printf '\n| printed mean of | values | Student'"'"'s covers | printed covers | width |\n|---|---:|---:|---:|---:|\n'
    sed -n "s/^oracle: reported mean, \(.*\), n=\(.*\): Student's \(.* %\), reported \(.* %\), width \(.*\), .* trials$/| \1 | \2 | \3 | \4 | \5 |/p" "$new.out" |
        sort -t'|' -k2,2 -k3,3n
    printf '\n| steady state, M/M/1 at load | values | runs with an interval | half width | covers |\n|---:|---:|---:|---:|---:|\n'
    sed -n 's/^oracle: steady state, M\/M\/1 at load \(.*\), n=\(.*\): an interval in \(.* %\) of [0-9]* runs\(.*\)$/\1,\2,\3\4/p' "$new.out" |
        sed 's/ of half width //; s/ covering //; s/ of [0-9]* runs//' |
        awk -F, '{ print "| " $1 " | " $2 " | " $3 " | " ($4 == "" ? "none: run longer" : $4) " | " $5 " |" }'
    printf '\n| interval | covers | trials |\n|---|---:|---:|\n'
    sed -n 's/^oracle: coverage of \(.*\): \(.* %\) of \([0-9]*\).*$/| \1 | \2 | \3 |/p' "$new.out"
    sed -n 's/^oracle: of \([0-9]*\) A\/A comparisons of ten metrics \(.* %\) find something, \(.* %\) without correction$/\n\2 of \1 comparisons with itself find something; \3 would without correction./p' "$new.out"
} >>"$new"
cp "$new" "$page"
