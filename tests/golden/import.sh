#!/bin/sh
# `trace import` must recognise one sample of every format, through a file, a pipe and gzip. The
# result is a trace that runs. A file cut short inside gzip is an error.
set -u
cd "$(dirname "$0")/../.." || exit 2
x=${BUILD:-build}/xpusim
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
bad=0
printf '\377\376a\0\n\0' >"$dir/u16.csv"
"$x" trace import "$dir/u16.csv" 2>"$dir/note"
[ $? = 2 ] && grep -qF "u16.csv: not a text file (it is UTF-16: \`iconv -f UTF-16" "$dir/note" || { cat "$dir/note"; bad=1; }
fail() { echo "FAILED: $*"; bad=1; }

for f in agentic-mooncake aiperf bailian copilot dynamo genai-perf guidellm inference-perf openai otel sharegpt tracelab vllm weka import; do
    sample=tests/fuzz/corpus/$f/sample
    [ "$f" = import ] && name=burstgpt || name=$f
    "$x" trace import "$sample" --rate-per-min 6 -o "$dir/a.csv" 2>"$dir/note" || fail "$f: $(cat "$dir/note")"
    grep -q "read as $name: " "$dir/note" || fail "$f: $(cat "$dir/note")"
    "$x" trace import - --rate-per-min 6 <"$sample" >"$dir/b.csv" 2>/dev/null
    cmp -s "$dir/a.csv" "$dir/b.csv" || fail "$f: standard input reads otherwise"
    gzip -c "$sample" >"$dir/c.gz"
    "$x" trace import "$dir/c.gz" --rate-per-min 6 >"$dir/b.csv" 2>/dev/null
    cmp -s "$dir/a.csv" "$dir/b.csv" || fail "$f: gzip reads otherwise"
    "$x" run --policy fcfs --trace "$dir/a.csv" -q >/dev/null 2>"$dir/note" || fail "$f does not run: $(cat "$dir/note")"
    other=$([ "$f" = otel ] && echo vllm || echo otel)
    "$x" trace import --format $other "$sample" -o "$dir/never.csv" 2>"$dir/note"
    [ $? = 2 ] && [ ! -e "$dir/never.csv" ] && grep -q "not $other: it begins as $name does" "$dir/note" ||
        fail "$f as $other: $(cat "$dir/note")"
done
# Real tools wrote these files (tests/samples). The test checks session, turn, input and output
# tokens of every request. For aiperf 40 and 12 tokens and two turns were requested. So the second
# prompt is the first, its answer and 40 more, 92. vLLM has 40 and 12. GenAI-Perf has 10 out, and
# prompts of 57 to 60 characters. These are 15 tokens at 4, and 9 to 13 words where the server says
# so. The spans say their own.
sample() {
    "$x" trace import "tests/samples/$1" 2>"$dir/note" | tail -n +3 | cut -d, -f2,3,7,8 | tr '\n' ' ' >"$dir/rows"
    echo "$2 " | tr -d '\n' | cmp -s - "$dir/rows" || fail "$1: $(cat "$dir/rows" "$dir/note")"
}
sample aiperf-0.13.0.jsonl "0,0,40,12 2,0,40,12 3,0,40,12 4,0,40,12 0,1,92,12 2,1,92,12 3,1,92,12 4,1,92,12"
sample vllm-0.32.0.json "0,0,40,12 1,0,40,12 2,0,40,12 3,0,40,12 4,0,40,12 5,0,40,12"
sample guidellm-0.8.1.json "0,0,12,12 1,0,11,12 0,1,33,12 1,1,33,12"
sample inference-perf-0.7.0.json "0,0,40,12 1,0,40,12 2,0,40,12"
sample genai-perf-0.0.16.json "0,0,15,10 1,0,15,10 2,0,15,10 3,0,15,10 4,0,15,10 5,0,15,10"
grep -q "tokens are characters over --chars-per-token$" "$dir/note" || fail "an estimate is not told: $(cat "$dir/note")"
sample genai-perf-0.0.16-usage.json "0,0,12,10 1,0,13,10 2,0,9,10 3,0,13,10 4,0,11,10 5,0,10,10"
sample otel-1.45.2.json "0,0,28,23 3,0,48,20 0,1,75,13 0,2,115,20 3,1,112,30 3,2,175,8"
# The lengths of a turn here count only new tokens: 2855 + 32 + 245 = 3132, 3132 + 31 + 308 = 3471
# and so on. Prompts share 5 of their blocks with the first (0 to 4), or 3: 1536 + 1536 + 2560
# tokens. The other two of the second session share them with the third.
sample aiperf-0.13.0-sessions.jsonl "0,0,2855,32 3,0,2899,98 4,0,2770,30 6,0,2797,49 0,1,3132,31 0,2,3471,94 4,1,2875,38 6,1,2891,30 6,2,3299,30"
grep -q "note: trace: 5 turns with the length of what is new;" "$dir/note" && grep -q "can serve 6656 more of 26989 prompt tokens" "$dir/note" ||
    fail "sessions of AIPerf: $(cat "$dir/note")"
sed 's/"error":null,//; s/"was_cancelled":false/"was_cancelled":true/' tests/samples/aiperf-0.13.0.jsonl >"$dir/failed"
"$x" trace import "$dir/failed" 2>"$dir/note" >"$dir/rows"
[ $? = 2 ] && grep -q "no requests: all 8 failed at their source" "$dir/note" || fail "a benchmark that failed: $(cat "$dir/note")"
gzip -c "$dir/a.csv" >"$dir/a.csv.gz"
"$x" run --policy fcfs --trace "$dir/a.csv" --json >"$dir/1.json" && "$x" run --policy fcfs --trace "$dir/a.csv.gz" --json |
    grep -v '"workload"' >"$dir/2.json" && grep -v '"workload"' "$dir/1.json" | cmp -s - "$dir/2.json" || fail "a packed trace runs otherwise"
"$x" trace import tests/samples/vllm-0.32.0.json --from 9 --to 5 -o "$dir/never.csv" 2>"$dir/note"
[ $? = 2 ] && [ ! -e "$dir/never.csv" ] && grep -q "none of its sessions begins at 9 s or later and before 5 s$" "$dir/note" ||
    fail "an empty window: $(cat "$dir/note")"
head -c 60 "$dir/c.gz" >"$dir/cut.gz"
"$x" trace import "$dir/cut.gz" -o "$dir/never.csv" 2>"$dir/note"
[ $? = 2 ] && [ ! -e "$dir/never.csv" ] && grep -q "cut.gz: the packed file is damaged or cut off$" "$dir/note" ||
    fail "a file cut short: $(cat "$dir/note")"
# The source's own cache could serve the shared blocks of prompts (1024 + 512 + 1536 tokens), and
# all are served, to the token.
printf '{"timestamp":%s,"input_length":%s,"output_length":9,"hash_ids":[%s]}\n' 0 1100 1,2,3 4000 1700 1,2,4,5 5000 600 1,6 \
    9000 2100 1,2,4,7,8 >"$dir/blocks.jsonl"
"$x" trace import "$dir/blocks.jsonl" -o "$dir/alone.csv" 2>"$dir/note"
grep -q "can serve 3072 more of 5500 prompt tokens" "$dir/note" || fail "shared blocks without --share: $(cat "$dir/note")"
# For a window the numbers are still those of the file, and a note says so. A prompt of 200 tokens
# has no 500 that a cache serves. In b's second turn all 200 are the session's, so the 30 of its
# first are lost.
"$x" trace import "$dir/blocks.jsonl" --from 2 -o "$dir/alone.csv" 2>"$dir/note"
grep -q "can serve 3072 more of 5500 prompt tokens;" "$dir/note" && grep -q "notes count all of the file" "$dir/note" || fail "numbers of a window: $(cat "$dir/note")"
printf '%s\n' arrival_s,input_tokens,output_tokens,session_id,prefix_tokens 0,200,10,b,30 110,200,10,b,500 >"$dir/plain.csv"
"$x" trace import "$dir/plain.csv" -o "$dir/alone.csv" 2>"$dir/note"
grep -q "can serve 30 more of 400 prompt tokens;" "$dir/note" || fail "a prefix longer than its prompt: $(cat "$dir/note")"
# A log whose clock counts from 1970 begins at 0, too. Both kinds of seconds in one are refused.
printf '%s\n' arrival_s,input_tokens,output_tokens,session_id,e2e_s 1732000005,90,3,a,2 1732000000,50,3,a,4 1732000002,20,3,b,1 >"$dir/unix.csv"
printf '%s\n' arrival_s,input_tokens,output_tokens,session_id,e2e_s 5,90,3,a,2 0,50,3,a,4 2,20,3,b,1 >"$dir/seconds.csv"
for log in unix seconds; do
    "$x" trace import "$dir/$log.csv" -o "$dir/$log.trace" 2>"$dir/note" || fail "$log.csv"
done
cmp "$dir/unix.trace" "$dir/seconds.trace" || fail "seconds since 1970"
# An option that changes nothing is named. In this log --history does change something, and in one of blocks --share.
"$x" trace import "$dir/seconds.csv" --history --share --link --block-tokens 4 --rate-per-min 2 -o "$dir/alone.csv" 2>"$dir/note"
grep -q "note: trace: without effect on this file: --link, --share, --block-tokens, --rate-per-min$" "$dir/note" || fail "options without effect: $(cat "$dir/note")"
"$x" trace import "$dir/blocks.jsonl" --history --share --link --block-tokens 512 -o "$dir/alone.csv" 2>"$dir/note"
grep -q "note: trace: without effect on this file: --history$" "$dir/note" || fail "options without effect on blocks: $(cat "$dir/note")"
"$x" trace import "$dir/unix.trace" 2>&1 | grep -q "unix.trace: is an xpusim trace already" || fail "a trace is no format"
echo 7,20,3,b,1 >>"$dir/unix.csv"
"$x" trace import "$dir/unix.csv" 2>&1 | grep -q 'unix.csv:5: column arrival_s: "7" must be a number from 1e+09' || fail "two kinds of seconds"
"$x" trace import "$dir/blocks.jsonl" --share -o "$dir/shared.csv" 2>"$dir/note" && ! grep -q "can serve" "$dir/note" ||
    fail "--share: $(cat "$dir/note")"
"$x" run --policy fcfs --trace "$dir/shared.csv" --set sim.kv_block_tokens=512 --json -q 2>/dev/null |
    grep -q '"all.cached_tokens":[^0-9]*3072,' || fail "shared blocks are not all served"
exit $bad
