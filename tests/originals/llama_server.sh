#!/bin/sh
# Builds build/originals/llama_steps, the scheduler of llama.cpp's server behind a clock of steps
# (llama_steps.cpp), from the source distribution of llama-cpp-python.
#   llama_server.sh FILE
# It fetches and builds the libraries once, without optimisation (about 9 processor minutes), below
# the user's cache. Exit 1, with the reason, says that this is not possible.
#   llama_server.sh http
# This makes the server itself, a program of those libraries (2 minutes more), which
# tests/golden/server.sh observes. It prints the program's path.
set -u
[ "$1" = http ] || out=$(realpath -m "$1")
cd "$(dirname "$0")" || exit 1
list=llama-server.txt
home=${XDG_CACHE_HOME:-$HOME/.cache}/xpusim-originals/llama-$(git hash-object "$list" | cut -c1-12)
source=$home/source/vendor/llama.cpp
export PIP_DISABLE_PIP_VERSION_CHECK=1 PIP_ROOT_USER_ACTION=ignore CCACHE_NOHASHDIR=1

fetch() {
    # pip asks the package for its metadata before it hands over the source: its build tools must be there.
    grep -v '^llama-cpp-python' "$list" >"$home/tools.txt"
    grep '^llama-cpp-python' "$list" >"$home/source.txt"
    python3 -m pip install -q --no-deps --require-hashes --target "$home/tools" -r "$home/tools.txt" &&
        PYTHONPATH=$home/tools python3 -m pip download -q --no-deps --no-build-isolation --require-hashes \
            --no-binary llama-cpp-python -d "$home" -r "$home/source.txt" &&
        mkdir -p "$home/source" && tar -xzf "$home"/llama_cpp_python-*.tar.gz -C "$home/source" --strip-components=1 &&
        rm -f "$home"/llama_cpp_python-*.tar.gz
}

build() {
    cmake -S "$source" -B "$home/build" -DCMAKE_BUILD_TYPE=None -DCMAKE_C_FLAGS=-O1 -DCMAKE_CXX_FLAGS=-O0 \
        -DBUILD_SHARED_LIBS=OFF -DLLAMA_BUILD_TESTS=OFF -DLLAMA_BUILD_EXAMPLES=OFF -DLLAMA_BUILD_TOOLS=ON \
        -DLLAMA_BUILD_SERVER=ON -DLLAMA_OPENSSL=OFF -DGGML_OPENMP=OFF -DGGML_LLAMAFILE=OFF -DGGML_CPU_REPACK=OFF &&
        nice make -C "$home/build" -j"${JOBS:-2}" server-context
}

if [ ! -e "$home/complete" ]; then
    command -v cmake >/dev/null && command -v g++ >/dev/null || { echo "cmake and g++ are needed to build it"; exit 1; }
    rm -rf "$home"
    mkdir -p "$home"
    fetch >"$home/log" 2>&1 || { tail -n 3 "$home/log" >&2; echo "its source could not be fetched"; exit 1; }
    build >"$home/log" 2>&1 || { tail -n 10 "$home/log" >&2; echo "it did not build"; exit 1; }
    find "$home/build" -name '*.o' -exec rm {} +
    touch "$home/complete"
fi

# link FILE MORE-SOURCES: a program of these sources and all the libraries.
link() {
    to=$1
    shift
    includes="-I$source/tools/server -I$source/tools/mtmd -I$source/common -I$source/include -I$source/ggml/include -I$source/vendor -I$source"
    # shellcheck disable=SC2046,SC2086
    g++ -std=c++17 -O0 $includes "$@" -o "$to" \
        -Wl,--start-group $(find "$home/build" -name '*.a') -Wl,--end-group -lpthread -ldl >"$home/log" 2>&1 ||
        { grep -m 3 error "$home/log" >&2; echo "$(basename "$to") did not build with it"; exit 1; }
}

# The server without its pages: the templates of the generated files, with no page in them.
http() {
    mkdir -p "$home/ui"
    for f in ui.h ui.cpp; do
        sed -e '/^#cmakedefine/d' -e 's/@N_ASSETS@/0/' -e 's/@USE_GZIP@/false/' -e 's/@[A-Z_]*@//' "$source/tools/ui/$f.in" >"$home/ui/$f"
    done
    tools=$source/tools/server
    link "$home/llama-server.part" "-I$home/ui" "$tools/main.cpp" "$tools/server.cpp" "$tools/server-http.cpp" \
        "$tools/server-models.cpp" "$home/ui/ui.cpp"
    mv "$home/llama-server.part" "$home/llama-server"
}

if [ "$1" = http ]; then
    [ -x "$home/llama-server" ] || http
    echo "$home/llama-server"
    exit 0
fi
mkdir -p "$(dirname "$out")"
if [ ! -x "$out" ] || [ llama_steps.cpp -nt "$out" ] || [ "$home/complete" -nt "$out" ]; then
    link "$out" llama_steps.cpp
fi
