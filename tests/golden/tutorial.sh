#!/bin/sh
# Every command of docs/tutorial.md runs, in a folder of its own, and prints what stands below it.
#   tutorial.sh            compares
#   tutorial.sh --update   writes what is printed into the page
set -u
cd "$(dirname "$0")/../.." || exit 2
XPUSIM=$PWD
export XPUSIM
unset MAKEFLAGS MFLAGS MAKELEVEL # a make within make would speak of folders
doc=$XPUSIM/docs/tutorial.md
case ${BUILD:-build} in /*) tools=${BUILD:-build} ;; *) tools=$PWD/${BUILD:-build} ;; esac
PATH=$tools:$PATH
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
cd "$dir" || exit 2
mkdir work && cd work || exit 2
bad=0
out=$dir/page
: >"$out"
skipping=0
while IFS= read -r line || [ -n "$line" ]; do
    case $line in
    '    $ '*)
        printf '%s\n' "$line" >>"$out"
        if ! sh -c "${line#????\$ }" >"$dir/said" 2>"$dir/errors" </dev/null; then
            echo "FAILED: ${line#????\$ }: $(cat "$dir/errors")"
            bad=1
        fi
        sed 's/^\(.\)/    \1/' "$dir/said" >>"$out"
        skipping=1
        ;;
    '    '*) [ $skipping = 1 ] || printf '%s\n' "$line" >>"$out" ;;
    *)
        # an empty line within what was printed belongs to it: what follows decides
        if [ -z "$line" ] && [ $skipping = 1 ]; then
            held=1
            continue
        fi
        [ "${held:-0}" = 1 ] && echo >>"$out"
        held=0
        skipping=0
        printf '%s\n' "$line" >>"$out"
        ;;
    esac
done <"$doc"
if [ "${1:-}" = --update ]; then
    cp "$out" "$doc"
    exit $bad
fi
diff "$doc" "$out" >"$dir/diff" || { cat "$dir/diff"; echo "FAILED: docs/tutorial.md: tests/golden/tutorial.sh --update, then look at the change"; bad=1; }
exit $bad
