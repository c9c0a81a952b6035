#!/bin/sh
# A real server is predicted: llama.cpp's own (llama_server.sh http), on the loopback and one
# processor, with a Llama of 134 million random weights. It runs two traces. `validate --run` fits
# rate and bandwidth to the first, and predicts the second.
#   server_study.sh [DIR]
# The script keeps the server's files in DIR. As root the server has real-time priority (chrt).
set -u
cd "$(dirname "$0")/../.." || exit 1
x=${BUILD:-build}/xpusim
server=${LLAMA_SERVER:-$(find "${XDG_CACHE_HOME:-$HOME/.cache}/xpusim-originals" -maxdepth 2 -name llama-server -perm -u+x 2>/dev/null | head -n 1)}
[ -n "$server" ] || { echo "no server was observed, there is none (sh tests/originals/llama_server.sh http builds one)"; exit 1; }
dir=${1:-$(mktemp -d)}
mkdir -p "$dir"
pid=
trap '[ -z "$pid" ] || kill "$pid" 2>/dev/null' EXIT
fail() {
    echo "server_study: $*"
    tail -n 5 "$dir/log" 2>/dev/null
    exit 1
}

[ -f "$dir/m.gguf" ] || python3 tests/originals/server_study.py "$dir" || fail "no model"
port=$(python3 -c 'import socket; s = socket.socket(); s.bind(("127.0.0.1", 0)); print(s.getsockname()[1])')
first="taskset -c 1"
chrt -f 1 true 2>/dev/null && first="chrt -f 1 taskset -c 1"
$first "$server" -m "$dir/m.gguf" --host 127.0.0.1 --port "$port" -c 8192 -np 4 -t 1 -tb 1 --no-warmup >"$dir/log" 2>&1 &
pid=$!
for i in $(seq 1200); do
    grep -q 'listening on http' "$dir/log" 2>/dev/null && break
    kill -0 $pid 2>/dev/null || fail "it did not start"
    sleep 0.1
done
[ "$i" -lt 1200 ] || fail "it did not listen within two minutes"
"$x" observe --url "http://127.0.0.1:$port/v1" --trace "$dir/t.csv" -o "$dir/run.csv" --timeout 200 || fail "observe"
uptime
"$x" validate --run "$dir/run.csv" --soc two-cores --llm "$dir/random-134m.json" --policy llama-cpp:device=igpu --set "sim.kv_capacity_tokens=8192" \
    --fit soc.devices.igpu.runtimes.0.rate,soc.devices.igpu.runtimes.0.bandwidth --fit-on first:0.5 \
    --requests "$dir/requests.csv" || fail "validate"
python3 - "$dir/requests.csv" <<'PY'
import csv, random, sys
rows = [r for r in csv.DictReader(open(sys.argv[1])) if r["part"] != "fit"]
errors = [abs(float(r["simulated_e2e_s"]) / float(r["e2e_s"]) - 1) for r in rows]
draw = random.Random(1)
means = sorted(sum(draw.choices(errors, k=len(errors))) / len(errors) for _ in range(10000))
print(f"E2E of the second trace: {100 * sum(errors) / len(errors):.1f} % [{100 * means[250]:.1f}, {100 * means[9750]:.1f}], {len(errors)} requests")
PY
