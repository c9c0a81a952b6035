#!/bin/sh
# A real server is observed: llama.cpp's own (tests/originals/llama_server.sh http builds it), on
# the loopback, with a tiny model of random weights that is written here. `observe` replays a trace
# against it, and `validate --run` reads the observed times. Where there is no server, one plain
# sentence is printed.
set -u
BUILD=${BUILD:-build}
x=$BUILD/xpusim
cd "$(dirname "$0")/../.." || exit 1
server=${LLAMA_SERVER:-$(find "${XDG_CACHE_HOME:-$HOME/.cache}/xpusim-originals" -maxdepth 2 -name llama-server -perm -u+x 2>/dev/null | head -n 1)}
if [ -z "$server" ]; then
    echo "skipped: no llama-server was observed, there is none (sh tests/originals/llama_server.sh http builds one)"
    exit 0
fi
dir=$(mktemp -d)
pid=
trap '[ -z "$pid" ] || kill "$pid" 2>/dev/null; rm -rf "$dir"' EXIT
fail() {
    echo "server: $*"
    tail -n 5 "$dir/log" 2>/dev/null
    exit 1
}

PYTHONPATH=tests/originals python3 -c 'import pathlib, sys, tiny_gguf; tiny_gguf.write(pathlib.Path(sys.argv[1]))' "$dir/m.gguf" || fail "no model"
port=$(python3 -c 'import socket; s = socket.socket(); s.bind(("127.0.0.1", 0)); print(s.getsockname()[1])')
"$server" -m "$dir/m.gguf" --host 127.0.0.1 --port "$port" -c 8192 -np 4 -t 1 --no-warmup >"$dir/log" 2>&1 &
pid=$!
for i in $(seq 6000); do
    grep -q 'listening on http' "$dir/log" 2>/dev/null && break
    kill -0 $pid 2>/dev/null || fail "it did not start"
    sleep 0.1
done
[ "$i" -lt 6000 ] || fail "it did not listen"

{
    echo '# xpusim-trace v1'
    echo 'request_id,session_id,turn,class,arrival_s,gap_s,input_tokens,output_tokens,prefix_tokens'
    for i in 0 1 2 3 4 5 6 7 8 9 10 11; do
        class=proactive
        [ $((i % 3)) -eq 0 ] && class=reactive
        echo "$i,$i,0,$class,$((i / 10)).$((i % 10)),,$((20 + i * 17)),$((4 + i)),0"
    done
} >"$dir/t.csv"
"$x" observe --url "http://127.0.0.1:$port/v1" --trace "$dir/t.csv" -o "$dir/run.csv" --timeout 60 2>"$dir/said" || fail "observe: $(cat "$dir/said")"
grep -q '^12 ok' "$dir/said" || fail "not all were answered: $(cat "$dir/said")"
# Each has at least one token and at most the requested number, because the model may say its end
# before.
awk -F, '/^#/ { next } !n { for (i = 1; i <= NF; i++) at[$i] = i; n = 1; next }
    { k++; t += $at["output_tokens"]; if ($at["output_tokens"] > $at["asked"] || $at["output_tokens"] < 1) bad = 1
      if ($at["ttft_s"] <= 0 || $at["e2e_s"] < $at["ttft_s"]) bad = 1 }
    END { print k, t; exit bad || k != 12 }' "$dir/run.csv" >"$dir/sums" || fail "what was seen: $(cat "$dir/sums" "$dir/run.csv")"
"$x" validate --run "$dir/run.csv" --soc two-cores --llm random-256 --policy llama-cpp:device=igpu --json >"$dir/v.json" 2>"$dir/said" ||
    fail "validate --run: $(cat "$dir/said")"
grep -q 'ttft' "$dir/v.json" || fail "validate --run says nothing of the first token"
echo "server: fine, $("$server" --version 2>&1 | grep -o 'version.*' | head -n 1): $(cut -d' ' -f1 "$dir/sums") requests, $(cut -d' ' -f2 "$dir/sums") tokens observed and validated against"
