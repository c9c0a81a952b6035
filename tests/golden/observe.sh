#!/bin/sh
# xpusim observe runs against a server that counts a word as a token. Prompts have the lengths of
# the trace, for any way of counting by the server. They begin as the trace says, and come after
# their parents.
set -eu
BUILD=${BUILD:-build}
x=$BUILD/xpusim
tmp=$(mktemp -d)
pid=
trap '[ -z "$pid" ] || kill "$pid" 2>/dev/null; rm -rf "$tmp"' EXIT
fail() { echo "observe: $*"; exit 1; }
serve() { # what the server says
    [ -z "$pid" ] || kill "$pid" 2>/dev/null
    : >"$tmp/port"
    python3 tests/helpers/completions.py "$tmp/log" "$@" >"$tmp/port" &
    pid=$!
    for _ in $(seq 6000); do
        [ -s "$tmp/port" ] && break
        sleep 0.1
    done
    [ -s "$tmp/port" ] || fail "the test's server does not start"
}
replay() { # trace, options...
    trace=$1
    shift
    "$x" observe --url "http://127.0.0.1:$(cat "$tmp/port")/v1" --trace "$trace" --timeout 60 "$@" -o "$tmp/run.csv" 2>"$tmp/said"
}
observe() { replay "$@" || fail "$(cat "$tmp/said")"; }
counted() { # of every row, by whom
    awk -F, -v by="$1" '/^#/ || /^request/ { next } { n++; if ($3 != 20 + 10 * $1 || $11 != by) bad = 1 } END { exit bad || n != 4 }' "$tmp/run.csv" ||
        fail "lengths by $1: $(cat "$tmp/run.csv")"
}

{
    echo '# xpusim-trace v1'
    echo 'request_id,session_id,turn,class,arrival_s,gap_s,input_tokens,output_tokens,prefix_tokens'
    echo '0,0,0,reactive,0.01,,20,4,0'
    echo '1,1,0,reactive,0.02,,30,4,0'
    echo '2,0,1,reactive,,0.01,40,4,24'
    echo '3,1,1,reactive,,0.01,50,4,13'
} >"$tmp/t.csv"
serve usage
observe "$tmp/t.csv"
counted server
# Turn 2 begins with the prompt and the answer before it, or with the 10 words of it that 13 tokens
# are. No other one does.
python3 - "$tmp/log" <<'EOF' || fail "prompts: $(cat "$tmp/log")"
import json, sys
by = {len(q["prompt"].split()) + 3: q for q in map(json.loads, open(sys.argv[1]))}
first, second = by[20], by[30]
assert by[40]["prompt"].startswith(first["prompt"] + first["answer"]), "prompt and answer"
words = by[50]["prompt"].split()
assert words[:10] == second["prompt"].split()[:10] and words[10:20] != second["prompt"].split()[10:20], "part of a prompt"
assert first["prompt"].split()[:12] != second["prompt"].split()[:12], "prompts that nobody said were alike"
asked = [line.split()[:8] for line in open(sys.argv[1] + ".asked")]
assert len(asked) == 2 and all(q["prompt"].split()[:8] not in asked for q in by.values()), "a prompt that was asked about before"
EOF
# Another model runs as a chat, 50 times as slow. The sent request says so, and the second one comes
# a second after the first.
serve usage
observe "$tmp/t.csv" --model mine --chat --scale 50
counted server
python3 - "$tmp/log" "$tmp/run.csv" <<'EOF' || fail "model, chat, scale: $(cat "$tmp/log" "$tmp/run.csv")"
import csv, json, sys
asked = [json.loads(line) for line in open(sys.argv[1])]
assert {q["model"] for q in asked} == {"mine"} and {q["path"] for q in asked} == {"/v1/chat/completions"}, asked
rows = {int(r["request_id"]): r for r in csv.DictReader(x for x in open(sys.argv[2]) if x[0] != "#")}
assert float(rows[1]["arrival_s"]) >= 50 * 0.02, rows[1]
EOF
# A server sends two tokens at once. Their number is the server's count, else that of the pieces.
for says in usage ""; do
    # shellcheck disable=SC2086
    serve pairs $says
    observe "$tmp/t.csv"
    awk -F, -v want="${says:+4}" '/^[0-9]/ && $4 != (want ? want : 2) { bad = 1 } END { exit bad }' "$tmp/run.csv" ||
        fail "answers of pieces of two tokens: $(cat "$tmp/run.csv")"
done
# Tokens of a chat's reasoning count, too.
serve thinks
observe "$tmp/t.csv" --chat
awk -F, '/^[0-9]/ && $4 != 4 { bad = 1 } END { exit bad }' "$tmp/run.csv" || fail "answers with reasoning: $(cat "$tmp/run.csv")"
serve tokenize
observe "$tmp/t.csv"
counted probe
serve
observe "$tmp/t.csv"
grep -q 'does not say how long prompts are' "$tmp/said" || fail "unknown lengths: $(cat "$tmp/said")"

# An error in a stream breaks it off, also where the server still ends the stream.
serve usage fails
for how in "" --chat; do
    # shellcheck disable=SC2086
    replay "$tmp/t.csv" $how && fail "answers with errors are fine: $(cat "$tmp/run.csv")"
    grep -q '^4 broken' "$tmp/said" || fail "answers with errors: $(cat "$tmp/said")"
done
# A session ends at 0.4 s. Its next turn is due at 0.02 + 0.5 s at the earliest, and later turns are
# not sent either.
{
    echo '# xpusim-trace v1'
    echo 'request_id,session_id,turn,class,arrival_s,gap_s,input_tokens,output_tokens,prefix_tokens,until_s'
    echo '0,0,0,reactive,0.01,,20,4,0,'
    echo '1,1,0,reactive,0.02,,30,4,0,'
    echo '2,1,1,reactive,,0.5,40,4,0,0.4'
    echo '3,1,2,reactive,,0,50,4,0,'
} >"$tmp/u.csv"
serve usage
observe "$tmp/u.csv"
grep -q '^2 ok' "$tmp/said" && grep -q '^2 unsent' "$tmp/said" || fail "a session that is over: $(cat "$tmp/said")"
[ "$(grep -c ,ok, "$tmp/run.csv")" = 2 ] && [ "$(grep -c '^[0-9]' "$tmp/run.csv")" = 2 ] || fail "rows that were sent: $(cat "$tmp/run.csv")"
# A user cancels after half a second, and not when the server's minute is over, and continues.
{
    echo '# xpusim-trace v1'
    echo 'request_id,session_id,turn,class,arrival_s,gap_s,input_tokens,output_tokens,prefix_tokens,cancel_s'
    echo '0,0,0,reactive,0.01,,20,4,0,0.5'
    echo '1,0,1,reactive,,0.01,30,4,0,0.5'
} >"$tmp/h.csv"
serve usage hangs
replay "$tmp/h.csv" && fail "answers that hang are fine: $(cat "$tmp/run.csv")"
awk -F, '/^[0-9]/ { n++; if ($2 >= 60 || $10 != "cancelled") bad = 1 } END { exit bad || n != 2 }' "$tmp/run.csv" ||
    fail "a user who cancels: $(cat "$tmp/run.csv")"

# In a job 2 waits for 0 and 1 and begins with 0, and 3 waits for 2. Requests 0 and 1 share a
# group's first 9 words, 12 tokens.
{
    echo '# xpusim-trace v2'
    echo 'request_id,session_id,turn,class,arrival_s,gap_s,input_tokens,output_tokens,prefix_tokens,prefix_group,prefix_of,parent_ids'
    echo '0,0,0,reactive,0.01,,23,4,12,7,,'
    echo '1,1,0,reactive,0.3,,33,4,12,7,,'
    echo '2,2,0,reactive,,0.01,43,4,23,,0,0;1'
    echo '3,3,0,reactive,,0.01,53,4,0,,,2'
} >"$tmp/g.csv"
serve usage
observe "$tmp/g.csv"
grep -q '^4 ok' "$tmp/said" || fail "a job: $(cat "$tmp/said")"
python3 - "$tmp/log" "$tmp/run.csv" <<'EOF' || fail "a job: $(cat "$tmp/log" "$tmp/run.csv")"
import csv, json, sys
log = [json.loads(line)["prompt"].split() for line in open(sys.argv[1])]
by = {len(words) + 3: words for words in log}
assert len(log) == 4, "each request once"
assert by[23][:9] == by[33][:9] and by[23][9:19] != by[33][9:19], "a group's text"
assert by[43][:20] == by[23], "another request's text"
rows = {int(r["request_id"]): r for r in csv.DictReader(x for x in open(sys.argv[2]) if x[0] != "#")}
end = {i: float(r["arrival_s"]) + float(r["e2e_s"]) for i, r in rows.items()}
begin = {i: float(r["arrival_s"]) for i, r in rows.items()}
assert begin[2] >= max(end[0], end[1]) + 0.01 and begin[3] >= end[2] + 0.01, "parents"
assert [rows[i]["prefix_tokens"] for i in range(4)] == ["12", "12", "23", "0"], "prefixes"
EOF
"$x" validate --run "$tmp/run.csv" --soc core-ultra-5-125h --llm llama-3.2-3b --policy fcfs >"$tmp/said" 2>&1 || fail "validate: $(cat "$tmp/said")"
grep -q '^warning: 3 of 4 prompts begin as others do' "$tmp/said" || fail "the cache of a server: $(cat "$tmp/said")"
# A server that has other addresses only gives its status. A missing server gives an error that
# names it, at once, and the file stays.
! "$x" observe --url "http://127.0.0.1:$(cat "$tmp/port")/v2" --trace "$tmp/t.csv" -o "$tmp/other.csv" 2>"$tmp/said" || fail "another address is fine"
grep -q '^4 http (status 404)$' "$tmp/said" || fail "which status? $(cat "$tmp/said")"
kill "$pid"
wait "$pid" 2>/dev/null || true
pid=
cp "$tmp/run.csv" "$tmp/before.csv"
status=0
"$x" observe --url "http://127.0.0.1:$(cat "$tmp/port")/v1" --trace "$tmp/t.csv" -o "$tmp/run.csv" 2>"$tmp/said" || status=$?
[ $status -eq 2 ] && grep -q "url http://127.0.0.1:$(cat "$tmp/port")/v1: no server is there" "$tmp/said" || fail "nobody there: $status, $(cat "$tmp/said")"
cmp "$tmp/run.csv" "$tmp/before.csv" || fail "nobody there, and the file is another"
echo "observe: fine"
