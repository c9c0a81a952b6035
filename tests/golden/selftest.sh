#!/bin/sh
# The command checks itself: closed forms and laws, and the negative controls. Each form of output
# holds the same checks.
set -eu
cd "$(dirname "$0")/../.."
x=${BUILD:-build}/xpusim
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
[ -z "${WHOLE:-}" ] || "$x" selftest --controls >/dev/null # two seconds, and the same controls as these
"$x" selftest --controls --json >"$dir/controls"
python3 -c "import json, sys
controls = json.load(sys.stdin)['controls']
assert all(c['p_holm'] <= 0.05 or '(significant)' not in c['found'] for c in controls)" <"$dir/controls"
"$x" selftest >"$dir/text" || { cat "$dir/text"; exit 1; }
n=$(sed -n 's/^\([0-9]*\) passed, 0 failed$/\1/p' "$dir/text")
[ "$n" -gt 5 ] && [ "$(grep -c '^ok ' "$dir/text")" = "$n" ]
[ "$("$x" selftest --quiet)" = "$n passed, 0 failed" ]
"$x" selftest --json | python3 -c "import json, sys
checks = json.load(sys.stdin)['checks']
assert len(checks) == $n and all(c['verdict'] == 'ok' and not c['failed'] and c['check'] for c in checks)"
[ "$("$x" selftest --csv | grep -c '^ok,')" = "$n" ]
[ "$("$x" selftest --markdown | grep -c '^| ok |')" = "$n" ]
