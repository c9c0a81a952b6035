#!/bin/sh
# Every command of docs/tutorial.md and of the pages of concepts runs, page by page in a folder of
# its own, and prints the text below it.
#   tutorial.sh                     compares; with WHOLE=yes also two pages, and the examples that take seconds: on tens of machines, of
#                                   a search for a rate or a worst scenario, of retrieval at three loads, and the second of
#                                   two comparisons of the same policy in Python
#   tutorial.sh --update [PAGE...]  writes what is printed into the pages (of all, or of these)
set -u
cd "$(dirname "$0")/../.." || exit 2
tree=$PWD
unset XPUSIM # a shell variable of the pages, and in no environment: a policy's Makefile has one of that name
unset MAKEFLAGS MFLAGS MAKELEVEL # a make within make would speak of folders
case ${BUILD:-build} in /*) tools=${BUILD:-build} ;; *) tools=$PWD/${BUILD:-build} ;; esac
PATH=$tools:$PATH
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
bad=0
update=no
[ "${1:-}" = --update ] && update=yes && shift
if [ $# -eq 0 ]; then
    set -- docs/tutorial.md docs/concepts/*.md
    # Two pages are a third of the time. They are comparisons on machines and of agents, which
    # uncertainty.sh, agents.sh and recipes.sh run.
    [ -n "${WHOLE:-}" ] || [ $update = yes ] || set -- $(printf '%s\n' "$@" | grep -v '/worth.md$\|/agents.md$')
fi

long() { # command: only CI runs it, and --update
    [ -z "${WHOLE:-}" ] && [ $update = no ] || return 1
    case $1 in *' --uncertainty '[3-9][0-9]' '* | *'xpusim search '* | *' rag-pipeline --load '* | *' falsify '*' --confirm '* | \
        *':OthersOnNpu --soc '*' --replications 5 '*) ;; *) return 1 ;; esac
}

# Writes a correct page into $out.
print_page() {
    : >"$out"
    skipping=0
    held=0
    while IFS= read -r line || [ -n "$line" ]; do
        case $line in
        '    $ '*)
            printf '%s\n' "$line" >>"$out"
            skipping=0
            ! long "$line" || continue
            if ! sh -c "XPUSIM='$tree'; ${line#????\$ }" >"$dir/said" 2>"$dir/errors" </dev/null; then
                echo "FAILED: ${line#????\$ }: $(cat "$dir/errors")"
                bad=1
            fi
            sed 's/^\(.\)/    \1/' "$dir/said" >>"$out"
            skipping=1
            ;;
        '    '*) [ $skipping = 1 ] || printf '%s\n' "$line" >>"$out" ;;
        *)
            # An empty line within printed text belongs to it, so the text after it decides.
            if [ -z "$line" ] && [ $skipping = 1 ]; then
                held=1
                continue
            fi
            [ "$held" = 1 ] && echo >>"$out"
            held=0
            skipping=0
            printf '%s\n' "$line" >>"$out"
            ;;
        esac
    done <"$1"
}

for page in "$@"; do
    out=$dir/page
    mkdir "$dir/work" && cd "$dir/work" || exit 2
    print_page "$tree/$page"
    cd "$tree" && rm -rf "$dir/work"
    if [ $update = yes ]; then
        cp "$out" "$page"
    else
        diff "$page" "$out" >"$dir/diff" ||
            { cat "$dir/diff"; echo "FAILED: $page: tests/golden/tutorial.sh --update, then look at the change"; bad=1; }
    fi
done
# every page is linked from the list of pages, and that from README
for page in docs/*.md docs/concepts/*.md; do
    [ "$page" = docs/README.md ] || grep -q "](${page#docs/})" docs/README.md || { echo "FAILED: $page is not in docs/README.md"; bad=1; }
done
grep -q "docs/README.md" README.md || { echo "FAILED: README.md does not name docs/README.md"; bad=1; }
exit $bad
