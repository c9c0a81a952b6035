#!/bin/sh
# Fetches and builds what real execution needs: engines.sh. Two optional engines, by package name and pinned:
#   ggml 0.25.3      from the source distribution of llama-cpp-python; only ggml's CPU part is built (about 95 CPU seconds)
#   OpenVINO 2026.4.1  the wheel: libraries and C headers are in it
# Both go below ${XDG_CACHE_HOME:-$HOME/.cache}/xpusim, where make looks for them, so that a fresh clone builds nothing
# again. An engine that cannot be built is one sentence and exit 0: everything else builds and passes without it.
# With --must it is exit 1.
set -u
cache=${XDG_CACHE_HOME:-$HOME/.cache}/xpusim
ggml=$cache/ggml-0.25.3
openvino=$cache/openvino-2026.4.1
jobs=${JOBS:-2}
export PIP_DISABLE_PIP_VERSION_CHECK=1 PIP_ROOT_USER_ACTION=ignore
umask 022

# ggml is built for this processor: another one builds it again.
flags=$(grep -m 1 '^flags' /proc/cpuinfo | cksum | tr ' ' -)
must=${1:-}
lacking=0
work=
trap 'rm -rf "$work"' EXIT

lacks() { # engine, reason
    echo "engines: $1 is not there ($2); \`xpusim drive --engine $1\` will say so, nothing else needs it" >&2
    lacking=1
}

fetch_ggml() {
    printf '%s\n' 'packaging==26.3 --hash=sha256:d7193f7c8e4e93f444fde0262bf90af30e16fa0ad0ad44cb553c87339b23cd1c' \
        'pathspec==1.1.1 --hash=sha256:a00ce642f577bf7f473932318056212bc4f8bfdf53128c78bbd5af0b9b20b189' \
        'scikit-build-core==1.1.2 --hash=sha256:7f4f959a467692db50bdd1ea7ce1507f2c7972e6023b753ee302d169bc4cec85' >"$work/tools.txt"
    echo 'llama-cpp-python==0.3.36 --hash=sha256:832db0699007f1be95a7e41ef12e88926b02ba836461e36a36372db2760c1a2e' >"$work/source.txt"
    # pip asks the package for its metadata before it hands over the source: its build tool must be there.
    python3 -m pip install -q --no-deps --require-hashes --target "$work/tools" -r "$work/tools.txt" &&
        PYTHONPATH=$work/tools python3 -m pip download -q --no-deps --no-build-isolation --require-hashes \
            --no-binary llama-cpp-python -d "$work" -r "$work/source.txt" &&
        tar -xzf "$work"/llama_cpp_python-*.tar.gz -C "$work" --strip-components=3 --wildcards '*/vendor/llama.cpp/ggml/*'
}

build_ggml() {
    touch "$work/ggml/ggml.pc.in" # its own build file expects it, the distribution leaves it out
    cmake -S "$work/ggml" -B "$work/build" -DCMAKE_BUILD_TYPE=Release -DBUILD_SHARED_LIBS=OFF \
        -DCMAKE_POSITION_INDEPENDENT_CODE=ON -DGGML_OPENMP=OFF -DGGML_BUILD_TESTS=OFF -DGGML_BUILD_EXAMPLES=OFF \
        -DGGML_LLAMAFILE=ON -DGGML_CCACHE=OFF &&
        nice make -C "$work/build" -j"$jobs" ggml-cpu
}

if [ "$(cat "$ggml/processor" 2>/dev/null)" != "$flags" ]; then
    work=$(mktemp -d)
    if ! command -v python3 >/dev/null || ! command -v cmake >/dev/null || ! command -v g++ >/dev/null; then
        lacks ggml "python3 with pip, cmake and g++ are needed to build it"
    elif ! fetch_ggml >"$work/log" 2>&1; then
        tail -n 3 "$work/log" >&2
        lacks ggml "its source could not be fetched"
    elif ! build_ggml >"$work/log" 2>&1; then
        tail -n 10 "$work/log" >&2
        lacks ggml "it did not build"
    else
        rm -rf "$ggml"
        mkdir -p "$ggml/lib"
        cp -r "$work/ggml/include" "$ggml/include"
        find "$work/build" -name 'libggml*.a' -exec cp {} "$ggml/lib" \;
        echo "$flags" >"$ggml/processor"
    fi
    rm -rf "$work"
fi

# The libraries do not depend on Python's version, so one wheel does for all; its Python part, which measure_windows.py is
# tested with, is of 3.11.
if [ ! -e "$openvino/include" ] || [ ! -e "$openvino/python" ]; then
    work=$(mktemp -d)
    printf '%s\n' 'openvino==2026.4.1 --hash=sha256:2d22b1da03f7caf74df30e9f6417d0ab2f637e4a38e08e1dcd294d2c37407aaf' \
        'numpy==2.4.6 --hash=sha256:89cd468399cfd2504718f0ba50e410dca55a170b61a02ad92bb18c8a65186e93' >"$work/wheels.txt"
    if ! command -v python3 >/dev/null; then
        lacks openvino "python3 with pip is needed to fetch it"
    elif ! python3 -m pip install -q --no-deps --require-hashes --only-binary=:all: --implementation cp --python-version 3.11 \
        --abi cp311 --platform manylinux_2_28_x86_64 --target "$work/python" -r "$work/wheels.txt" >"$work/log" 2>&1; then
        tail -n 3 "$work/log" >&2
        [ -e "$openvino/include" ] || lacks openvino "its wheel could not be fetched"
    else
        rm -rf "$openvino.part"
        mkdir -p "$openvino.part"
        mv "$work/python/openvino/libs" "$work/python/openvino/include" "$openvino.part"
        ln -s ../../libs "$work/python/openvino/libs"
        mv "$work/python" "$openvino.part/python"
        # What is there may be in use: it only gets what it lacks.
        if [ -e "$openvino/include" ]; then
            mv "$openvino.part/python" "$openvino/python"
        else
            rm -rf "$openvino"
            mv "$openvino.part" "$openvino"
        fi
        rm -rf "$openvino.part"
    fi
    rm -rf "$work"
fi
[ "$must" != --must ] || exit $lacking
