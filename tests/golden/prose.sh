#!/bin/sh
# tests/prose.py finds every way in which a formatter runs a list of a comment together, and a table that a sentence
# runs into; and none that is whole.
set -u
cd "$(dirname "$0")/../.." || exit 2
command -v python3 >/dev/null 2>&1 || { echo "skipped: python3 is not installed"; exit 0; }
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
bad=0
expect() { # breach or "", name, ending of the file (h); the file on standard input
    file=$dir/$2.${3:-h}
    cat >"$file"
    got=$(python3 tests/prose.py --list "$file" | sed "s,^$file:[0-9]*: ,,")
    [ "$got" = "$1" ] || { echo "FAILED: $2: wanted \"$1\", got \"$got\""; bad=1; }
}
expect "a list that runs into the first column" row <<'END'
/* The keys of a workload.
 *
 *   workload  keys of the generator by their names, which come with the share of the whole
 * time. */
END
expect "columns in the middle of a sentence: a list that was reflowed" gap <<'END'
/* Two metrics have details.
 *
 * It is 0 where the two share the device session_s   is in the group of its last turn. */
END
expect "a sentence broken before a comparison" comparison <<'END'
/* A model guarantees that the sum of all shares
 * <= capacity. */
END
expect "a trailing comment cut in two" trailing <<'END'
struct audit {
    unsigned future; /* not arrived at the horizon, or */
                     /* never arrived */
};
END
expect "" whole <<'END'
/* A table of three rows, and code.
 *
 *   workload  keys of the generator, by their names; bursts come with the share of time
 *             that makes them whole
 *   machine   factors on numbers
 *   cap       share <= capacity
 *
 *     struct audit a = {1};   // a gap in code is no list
 *
 * The sum is at most 1. */
struct audit {
    unsigned arrived; /* arrived */
    unsigned future;  /* not arrived */
};
END
mkdir -p "$dir/tests/unit" # a test's comments are sentences, and its literals are data
expect '"beside": next to, co-running' tests/unit/check_x c <<'END'
/* Two requests run beside each other. */
static const char says[] = "a device beside another is told anew";
END
h='#' q='"""' # so that these samples are no comments of this script
expect '"told": reported, prints, says' script sh <<END
$h!/bin/sh
$h The user is told.
$h   script.sh FILE     a row: whatever it is
$h shellcheck disable=SC2086
echo "what is told beside it"
END
expect '"anew": again' docstring py <<END
${q}Draws anew.$q
x = "told"
END
expect "a table that begins in a paragraph" begins md <<'END'
A run that is settled is `S| word | meaning |
| --- | --- |
| stable | it is |
END
expect "a row of a table that runs into a sentence" ends md <<'END'
A run that is settled:

| word | meaning |
| --- | --- |
| stable | it is |`. A run that grows is not.
END
expect "" table md <<'END'
A run that is settled:

| word | meaning |
| --- | --- |
| stable | it is |
END
exit $bad
