#!/bin/sh
# Runs the Check programs given and every script test; ends with "N passed, N failed".
# A program that crashes or says nothing counts as one failure.
set -u
cd "$(dirname "$0")/.." || exit 2
BUILD=${BUILD:-build}
export BUILD
passed=0
failed=0
out=$(mktemp)
trap 'rm -f "$out"' EXIT

for program in "$@"; do
    CK_DEFAULT_TIMEOUT=${CK_DEFAULT_TIMEOUT:-300} "$program" >"$out" 2>&1
    status=$?
    # Check prints "NN%: Checks: C, Failures: F, Errors: E"
    line=$(grep -E '^[0-9]+%: Checks: ' "$out" | tail -n 1)
    checks=$(echo "$line" | sed -n 's/.*Checks: \([0-9]*\),.*/\1/p')
    bad=$(echo "$line" | sed -n 's/.*Failures: \([0-9]*\), Errors: \([0-9]*\).*/\1 \2/p' | awk '{print $1 + $2}')
    if [ -z "$checks" ] || [ "$checks" -eq 0 ]; then
        checks=1
        bad=1
    elif [ "$status" -ne 0 ] && [ "$bad" -eq 0 ]; then
        bad=1
    fi
    passed=$((passed + checks - bad))
    failed=$((failed + bad))
    printf '%-48s %4d passed %4d failed\n' "${program#"$BUILD"/}" $((checks - bad)) "$bad"
    if [ "$bad" -gt 0 ]; then
        cat "$out"
    else
        grep -E '^(oracle|note|skipped): ' "$out"
    fi
done

for script in tests/golden/*.sh; do
    [ -e "$script" ] || continue
    if sh "$script" >"$out" 2>&1; then
        passed=$((passed + 1))
        printf '%-48s    1 passed    0 failed\n' "$script"
    else
        failed=$((failed + 1))
        printf '%-48s    0 passed    1 failed\n' "$script"
        cat "$out"
    fi
done

echo "$passed passed, $failed failed"
[ "$failed" -eq 0 ]
