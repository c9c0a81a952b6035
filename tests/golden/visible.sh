#!/bin/sh
# No escape sequence and no line break of another's text reaches a terminal: not from a cell of a
# trace, a name of a JSON file, the error of a policy, or a path. Data formats keep the text and
# escape it in their own way.
set -u
cd "$(dirname "$0")/../.." || exit 2
x=$(cd "${BUILD:-build}" && pwd)/xpusim
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
bad=0
esc=$(printf '\033')
fail() {
    echo "FAILED: $*"
    bad=1
}
clean() { # status, text that must be there, command...
    status=$1
    want=$2
    shift 2
    "$@" >"$dir/out" 2>&1
    got=$?
    [ $got = "$status" ] && grep -qF -- "$want" "$dir/out" || { fail "(exit $got, wanted $status and \"$want\"): $*"; cat -v "$dir/out"; }
    LC_ALL=C grep -q "[$(printf '\001-\010\013-\037\177')]" "$dir/out" && { fail "control characters: $*"; cat -v "$dir/out"; }
}
load=mixed:duration_s=60
title="$esc]0;mine$(printf '\007')"

# A cell. It has the column's place, and question marks.
printf '# xpusim-trace v1\nrequest_id,session_id,turn,class,arrival_s,gap_s,input_tokens,output_tokens,prefix_tokens\n0,0,0,proactive,0,,%s,20,0\n' \
    "$title" >"$dir/cell.csv"
clean 2 'column input_tokens: "?]0;mine?" must be' "$x" run --policy fcfs --trace "$dir/cell.csv"
# A path, in an error and in a result.
mkdir "$dir/$esc[31m"
clean 2 '?[31m/none.csv: no file matches' "$x" run --policy fcfs --trace "$dir/$esc[31m/none.csv"
printf '# xpusim-trace v1\nrequest_id,session_id,turn,class,arrival_s,gap_s,input_tokens,output_tokens,prefix_tokens\n0,0,0,reactive,0,,20,20,0\n' \
    >"$dir/$esc[31m/t.csv"
clean 0 '?[31m/t.csv' "$x" run --policy fcfs --trace "$dir/$esc[31m/t.csv"
clean 0 '?[31m/t.csv' "$x" run --policy fcfs --trace "$dir/$esc[31m/t.csv" --markdown
# A name of a file: it is refused, also with a line break or a C1 control of UTF-8.
name=$(sed -n 's/.*"name": "\([^"]*\)".*/\1/p' hwmodels/llm/llama-3.2-3b.json | head -n 1)
for escape in '\\u001b[31m' '\\n' '\\u009b31m'; do
    sed "s/\"name\": \"$name\"/\"name\": \"a${escape}b\"/" hwmodels/llm/llama-3.2-3b.json >"$dir/named.json"
    clean 2 'name: must not hold control characters' "$x" run --policy fcfs --llm "$dir/named.json" --workload "$load"
done
# The error of a policy, in a run and in the table of a comparison; a command in its name.
cat >"$dir/policy.sh" <<'END'
read -r hello
printf '%s\n' '{"protocol":1,"name":"rude","summary":"errs"}'
read -r init || exit 0
echo '["do",[]]'
read -r line
printf '%s\n' '["error","\u001b]0;mine\u0007\nand more"]'
END
clean 1 '?]0;mine??and more' "$x" run --policy "exec:sh $dir/policy.sh" --workload "$load" --trouble ''
clean 1 '?]0;mine??and more' "$x" compare --policy "exec:sh $dir/policy.sh" --policy fcfs --replications 2 --workload "$load" -q
sed 's/rude","summary":"errs/rude","summary":"\\u001b[2J/' "$dir/policy.sh" >"$dir/summary.sh"
clean 0 'rude: ?[2J' "$x" list policy "exec:sh $dir/summary.sh"
# JSON and CSV have the text as it is.
clean 0 '\u001b[31m/t.csv' "$x" run --policy fcfs --trace "$dir/$esc[31m/t.csv" --json
"$x" list policy "exec:sh $dir/summary.sh" --csv >"$dir/out"
grep -qF "$esc[2J" "$dir/out" || fail "CSV lost a character: $(cat -v "$dir/out")"
exit $bad
