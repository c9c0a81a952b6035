#!/bin/sh
# A claim's verdict must follow from its numbers. experiments/claims/verdicts.py judges the numbers
# of `claims --json` again, by the rules of claims.h, and shares nothing with the program.
set -eu
cd "$(dirname "$0")/../.."
x=${BUILD:-build}/xpusim
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
again="python3 experiments/claims/verdicts.py"

# These are orders, numbers, ranges, bounds on maxima, fitted, undecided, and not modellable claims.
"$x" claims A6 B6 B8 B12 B14 B17 B26 D9 D16 D22 D25 --reading taken --replications 4 --json -q >"$dir/claims.json"
# Claims have several checks, of which some are reproduced and some are not. The test asks for the
# words, not for the numbers.
"$x" claims B16 B25 D5 D15 --reading taken --replications 2 --json -q >"$dir/mixed.json"
"$x" claims B14 B17 --reading stated --profile paper-125h --replications 4 --json -q >"$dir/fitted.json"
$again "$dir/claims.json" "$dir/fitted.json" "$dir/mixed.json"
for word in reproduced calibrated direction "not reproduced" "not modellable"; do
    grep -q "\"verdict\":.\"$word\"" "$dir/claims.json" || { echo "no claim is $word: the test sees less than it should"; exit 1; }
done
grep -q '"verdict":.*"calibrated"' "$dir/fitted.json" || { echo "B14 was fitted to, and is not calibrated"; exit 1; }

# A word that the numbers contradict is found, of a claim and of a check.
sed 's/"verdict":\t"direction"/"verdict":\t"reproduced"/' "$dir/claims.json" >"$dir/kinder.json"
if $again "$dir/kinder.json" >"$dir/seen"; then
    echo "verdicts.py does not see that direction was called reproduced"
    exit 1
fi
grep -q "B6: reproduced, but its numbers say direction" "$dir/seen"
grep -q "B6: .*reactive/min: reproduced, but" "$dir/seen"

# README's counts are those of the page.
count() { awk -F'|' -v machine="$1" -v column="$2" '$3 ~ machine { n += $column } END { print n }' docs/claims.md; }
line=$(grep "Do the papers' results hold" README.md)
for n in "$(count 'anchored|phones' 4) are reproduced" "$(count 'anchored|phones' 5) calibrated" \
    "$(count 'anchored|phones' 8) not reproduced"; do
    case $line in
    *"$n"*) ;;
    *) echo "README says of claims: $line; docs/claims.md: $n" && exit 1 ;;
    esac
done
