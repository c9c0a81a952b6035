#!/bin/sh
# Compares our policies with the schedulers they are named after, step by step.
#   originals.sh [--must] [openvino | llama-server | sglang | vllm-0.11.0 | vllm-0.32.0] [workloads] [more of compare.py's options]
# It installs the packages of tests/originals/NAME.txt, hashes and all, in a virtual environment of
# their own (llama-server is built, llama_server.sh). Where that is not possible it says so and
# passes. With --must it fails then.
set -u
cd "$(dirname "$0")/../.." || exit 2
may_skip=0
[ "${1:-}" = --must ] && may_skip=1 && shift
name=${1:-openvino}
n=${2:-240}
[ $# -gt 2 ] && shift 2 || set --
build=${BUILD:-build}
list=tests/originals/$name.txt
[ -f "$list" ] || { echo "originals: there is no $list" >&2; exit 2; }
skip() { echo "skipped: originals: $*; $name was not compared"; exit $may_skip; }

[ "$(uname -sm)" = "Linux x86_64" ] || skip "the packages of $list are for x86-64 Linux"
python=
for p in python3.11 python3; do
    [ -z "$python" ] && "$p" -c 'import sys, venv, ensurepip; sys.exit(sys.version_info[:2] != (3, 11))' 2>/dev/null && python=$p
done
[ -n "$python" ] || skip "there is no Python 3.11 with venv"
if [ "$name" = llama-server ]; then
    why=$(sh tests/originals/llama_server.sh "$build/originals/llama_steps") || skip "$why"
    LLAMA_STEPS=$build/originals/llama_steps exec "$python" tests/originals/compare.py llama "$n" --xpusim "$build/xpusim" \
        --folder "$build/originals" "$@"
fi
home=${XDG_CACHE_HOME:-$HOME/.cache}/xpusim-originals/$(git hash-object "$list" | cut -c1-12)
if [ ! -e "$home/complete" ]; then
    rm -rf "$home"
    mkdir -p "$(dirname "$home")"
    "$python" -m venv "$home" && "$home/bin/pip" install -q --no-cache-dir --no-deps --require-hashes -r "$list" &&
        touch "$home/complete" || skip "the packages of $list could not be installed"
fi
exec "$home/bin/python" tests/originals/compare.py "${name%%-*}" "$n" --xpusim "$build/xpusim" --folder "$build/originals" "$@"
