#!/bin/sh
# House rules that a compiler does not check. Prints every breach; exit 1 when there is one.
set -u
cd "$(dirname "$0")/.." || exit 2
bad=0
found=$(mktemp)
trap 'rm -f "$found"' EXIT
say() { echo "lint: $*"; bad=1; }

# 0. Scripts can be read to their end: a shell finds an open quote only when it gets there.
bash -n .ci/run || say ".ci/run cannot be read"
for f in $(git ls-files '*.sh'); do
    sh -n "$f" || say "$f cannot be read"
done

# 1. Data flows one way: who may include whom (sim/README.md).
below='sim|policies|hwmodels|traces' # what every experiment stands on
allowed() {
    case $1 in
    sim/base/*) echo 'sim/base/' ;;
    sim/api/*) echo 'sim/(base|api)/' ;;
    sim/record/*) echo 'sim/(base|api|record)/' ;;
    sim/core/*) echo 'sim/(base|api|record|core)/' ;;
    sim/drive/*) echo 'sim/(base|api|core|drive|engine/eventq)' ;;
    sim/engine/*) echo 'sim/(base|api|core|engine)/' ;;
    sim/stats/*) echo 'sim/(base|stats)/' ;;
    sim/metrics/*) echo 'sim/(base|api|metrics)/' ;;
    policies/*) echo '(sim/(base|api|record)|policies)/' ;;
    hwmodels/backends/*) echo '(sim/(base|api|core)|hwmodels)/' ;;
    hwmodels/*) echo '(sim/(base|api)|hwmodels)/' ;;
    traces/*) echo '(sim/(base|api)|traces)/' ;;
    plots/*) echo '(sim/(base|stats)/|sim/metrics/metric_table|plots)' ;;
    experiments/shell/*) echo '(sim/base/|sim/stats/|sim/metrics/metric_table|experiments/shell/)' ;;
    experiments/store/*) echo '(sim/(base|metrics)|experiments/store)/' ;;
    experiments/run/*) echo "($below|experiments/(shell|store|run))/" ;;
    experiments/compare/*) echo "($below|experiments/(shell|store|run|compare))/" ;;
    experiments/observe/*) echo "($below|experiments/observe)/" ;;
    experiments/drive/*) echo "($below|plots|experiments/(shell|run|compare|machine|drive))/" ;;
    experiments/conformance/*) echo "($below|experiments/(shell|run|diff|conformance))/" ;;
    experiments/gate/*) echo "($below|experiments/(shell|store|run|compare|diff|gate))/" ;;
    experiments/diff/*) echo "($below|experiments/(shell|run|diff))/" ;;
    experiments/figures/*) echo "($below|plots|experiments/(shell|run|claims|figures))/" ;;
    experiments/report/*) echo "($below|plots|experiments/(shell|report))/" ;;
    experiments/arena/*) echo "($below|experiments/(shell|store|run|compare|sweep|falsify|diff|arena))/" ;;
    experiments/commands/*) echo '.*' ;;
    experiments/*) echo "($below|experiments/(shell|store|run|compare|$(echo "$1" | cut -d/ -f2)))/" ;;
    *) echo '.*' ;;
    esac
}
files=$(git ls-files --cached --others --exclude-standard '*.c' '*.h')
for f in $files; do
    [ -f "$f" ] || continue
    ok=$(allowed "$f")
    grep -nE '^#include "' "$f" | grep -vE "#include \"$ok" | while read -r line; do
        echo "lint: $f:$line: not allowed from this folder"
    done
done >"$found"
if [ -s "$found" ]; then
    cat "$found"
    bad=1
fi

# 2. Every public header stands alone.
for f in $(echo "$files" | tr ' ' '\n' | grep '\.h$'); do
    [ -f "$f" ] || continue
    ${CC:-gcc} -std=c17 -D_POSIX_C_SOURCE=200809L -I. -Wall -fsyntax-only -x c "$f" 2>/dev/null ||
        say "$f: does not compile alone"
done

# 3. Size and form: a breach above the hard limits, a note above the wanted ones.
for f in $files; do
    [ -f "$f" ] || continue
    awk -v f="$f" '
        function breach(where, what) { print "lint: " f where ": " what; bad = 1 }
        /\t/ { breach(":" NR, "tab") }
        length($0) > 100 { breach(":" NR, "longer than 100 columns") }
        /^{/ { start = NR }
        /^}/ {
            n = start ? NR - start - 1 : 0
            if (n > 120) breach(":" start, "function of " n " lines, over 120")
            else if (n > 60) print "note: " f ":" start ": function of " n " lines, over 60"
            start = 0
        }
        END {
            if (NR > 600) breach("", NR " lines, over 600")
            else if (NR > 400) print "note: " f ": " NR " lines, over 400"
            exit bad
        }' "$f" || bad=1
done

# 4. Policies stay small: half of the files within 200 lines; orders on iter.c, tables included.
wc -l policies/*.c policies/[!c]*/*.c | awk '
    $2 ~ /\/(registry|params|replay)\.c$/ || $2 == "total" { next }
    { n[++k] = $1; for (i = k; i > 1 && n[i] < n[i - 1]; i--) { t = n[i]; n[i] = n[i - 1]; n[i - 1] = t } }
    END {
        m = k % 2 ? n[(k + 1) / 2] : (n[k / 2] + n[k / 2 + 1]) / 2
        print "policies: " k " files, median " m " lines, longest " n[k]
        if (m > 200) { print "lint: policies/: median of " m " lines, over 200"; exit 1 }
    }' || bad=1
# shellcheck disable=SC2046
wc -l $(grep -lE '(iter|deadline)\.h"' policies/*.c) |
    awk '$2 != "total" { sub(/.*\//, "", $2); printf("%s%s %d", (NR == 1 ? "orders on iter.c: " : ", "), $2, $1) } END { print " lines" }'

# 5. The contract of policies: its hash, its Python classes and its page follow from sim/api.
python3 sim/record/generate.py --check >"$found" || { sed 's/^/lint: /' "$found"; bad=1; }

# 6. No call runs up: the files of a folder stand in layers.
folders=$(git ls-files --cached --others --exclude-standard "*.c" | grep -v "^tests/" | xargs -n 1 dirname | sort -u)
# shellcheck disable=SC2086
python3 tests/knots.py $folders >"$found" || { sed 's/^/lint: /' "$found"; bad=1; }

# 7. What a scope frees is not freed by hand as well.
python3 tests/scope.py >"$found" || { sed 's/^/lint: /' "$found"; bad=1; }

# 8. No machine's paths, no leftovers.
git grep -nE '/(home|root|work|tmp/[a-z]+)/' -- . ':!tests/lint.sh' ':!.ci' && bad=1

for f in $(git ls-files --cached --others --exclude-standard | grep -E '(^|/)-'); do
    echo "lint: $f: a file named like an option"
    bad=1
done

# 9. Every clause that is cited stands in docs/clauses.md.
git ls-files --cached --others --exclude-standard '*.c' '*.h' '*.md' '*.sh' '*.json' | grep -v '^docs/clauses.md$' |
    xargs grep -ohE 'clauses\.md(,)? ([0-9]|[A-F])(\.[0-9]+)?' 2>/dev/null | sed -E 's/.* //' | sort -u >"$found"
while read -r clause; do
    grep -qE "^##+ $clause( |\$)" docs/clauses.md || say "clauses.md $clause is cited and does not exist"
done <"$found"
git grep -nE '(^|[^/a-z])(policies|hardware|backends|anchors)\.md|DESIGN(\.md)? (section )?[0-9]' -- '*.c' '*.h' '*.md' '*.sh' ':!CHANGELOG.md' |
    sed 's/^/lint: a document that is not here is cited: /' >"$found"
if [ -s "$found" ]; then
    cat "$found"
    bad=1
fi

# 10. Files are written by sim/base/output and opened by sim/base/input ("wx" makes a new one or none); a measurement
# goes on in its half file.
git grep -nE '\b(fopen|freopen)\(|\brename\(' -- 'sim' 'policies' 'hwmodels' 'traces' 'plots' 'experiments' ':!traces/texts' |
    grep -vE '^(sim/base/(output|input)|experiments/commands/measure_resume)\.c:|"wx"' | grep -E '\.[ch]:' >"$found"
if [ -s "$found" ]; then
    cat "$found"
    say "files are opened past sim/base/input.h and output.h"
fi

# The files that repeat the version have that of sim/base/version.h.
if command -v python3 >/dev/null 2>&1; then
    python3 .ci/version.py || bad=1
fi

# 11. Texts keep to the style page (CONTRIBUTING.md, "How we write").
if command -v python3 >/dev/null 2>&1; then
    python3 tests/prose.py || bad=1
else
    echo "lint: python3 is not installed: the style of texts is not checked"
fi

if command -v clang-format >/dev/null 2>&1; then
    # shellcheck disable=SC2086
    clang-format --dry-run -Werror $files 2>&1 | grep -E 'error|warning' | head -n 20 >"$found"
    if [ -s "$found" ]; then
        cat "$found"
        say "clang-format differs: run make format"
    fi
else
    echo "lint: clang-format is not installed: layout not checked"
fi
[ $bad -eq 0 ] && echo "lint: clean"
exit $bad
