#!/bin/sh
# docs/figures.md on stdout and its pictures in docs/figures: page.sh [xpusim]. `make figures` runs it. TRACES says how many,
# STORE=FILE.db keeps the runs.
set -eu
cd "$(dirname "$0")/../.."
x=${1:-build/xpusim}
how="--replications ${TRACES:-3}"
made=$(mktemp)
trap 'rm -f "$made"' EXIT
rm -f docs/figures/*.svg
{
    cat experiments/figures/page.md
    paper=""
    for f in $(ls experiments/figures/*-*.json | sed 's/-\([0-9]\)\([b.]\)/-0\1\2/' | sort | sed 's/-0\([0-9][b.]\)/-\1/'); do
        name=$(basename "$f" .json)
        [ "$paper" = "${name%-*}" ] || printf '\n## %s\n' "${name%-*}"
        paper=${name%-*}
        # shellcheck disable=SC2086
        "$x" figure "$paper" "${name##*-}" $how ${STORE:+--store "$STORE"} --markdown -q -o docs/figures |
            sed 's/^## [^ ]*, figure /### Figure /; s/^## [^ ]*, table /### Table /'
        [ ! -e "docs/figures/$name.svg" ] || printf '\n![%s](figures/%s.svg)\n' "$name" "$name"
    done
    printf '\n## Not made\n\n'
    "$x" figure --markdown -q | sed -n '/^| paper | number | why/,$p'
    printf '\nMade by `make figures`, with %s, sources of %s.\n' "$("$x" --version | head -1)" \
        "$(git log -1 --format=%cs 2>/dev/null || echo 'no repository')"
} >"$made"
cat -s "$made"
