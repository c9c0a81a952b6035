#!/bin/sh
# Installs the Debian packages that are missing: setup.sh [base|all|engines].
#   base  what building, testing and the demo need
#   engines  what real execution needs beside the program (engines.sh): ggml and OpenVINO
#   all   engines; also what lint, the clang build and the Slurm stage of .ci/run need, and what tests otherwise leave out,
#         saying so: Chromium to open the report page, the simulator for pages (make wasm) with node to run it, debhelper for the package, OpenBLAS, OpenCL with PoCL's CPU device
# Does nothing, quickly, when everything is there.
set -u
base="gcc make pkg-config libgsl-dev libcjson-dev libcsv-dev libcurl4-openssl-dev libsqlite3-dev zlib1g-dev check gnuplot-nox"
extra="clang clang-format libopenblas0-pthread ocl-icd-libopencl1 pocl-opencl-icd slurm-wlm munge chromium debhelper python3-venv lld-14 llvm-14 wasi-libc libclang-rt-14-dev-wasm32 dpkg-dev nodejs"
missing=""

need() { # package, test command
    package=$1
    shift
    "$@" >/dev/null 2>&1 || missing="$missing $package"
}

need gcc command -v gcc
need make command -v make
need libc6-dev test -e /usr/include/stdio.h
need pkg-config command -v pkg-config
need libgsl-dev pkg-config --exists gsl
need libcjson-dev pkg-config --exists libcjson
need libcsv-dev test -e /usr/include/csv.h
need libcurl4-openssl-dev pkg-config --exists libcurl
need libsqlite3-dev pkg-config --exists sqlite3
need zlib1g-dev pkg-config --exists zlib
need check pkg-config --exists check
need gnuplot-nox command -v gnuplot
if [ "${1:-base}" != base ]; then
    need g++ command -v g++
    need cmake command -v cmake
    need python3-pip python3 -m pip --version
fi
if [ "${1:-base}" = all ]; then
    need clang command -v clang
    need clang-format command -v clang-format
    need libopenblas0-pthread dpkg -s libopenblas0-pthread
    need ocl-icd-libopencl1 dpkg -s ocl-icd-libopencl1
    need pocl-opencl-icd dpkg -s pocl-opencl-icd
    need slurm-wlm test -x /usr/sbin/slurmctld
    need chromium command -v chromium
    need debhelper command -v dh
    need python3-venv python3 -c 'import ensurepip'
    need munge test -x /usr/sbin/munged
    need lld-14 command -v wasm-ld-14
    need llvm-14 command -v llvm-ar-14
    need wasi-libc test -e /usr/include/wasm32-wasi/stdio.h
    need libclang-rt-14-dev-wasm32 dpkg -s libclang-rt-14-dev-wasm32
    need dpkg-dev command -v dpkg-source
    need nodejs command -v node
fi
engines() { # all that .ci/run judges with must be there
    case $1 in
    engines) sh "$(dirname "$0")/engines.sh" ;;
    all) sh "$(dirname "$0")/engines.sh" --must ;;
    esac
}
# The official client of the Model Context Protocol, in an environment of its own; tests/golden/mcp.sh says where it is not there.
client() {
    home=${XDG_CACHE_HOME:-$HOME/.cache}/xpusim/mcp-2.3.0
    [ "$1" = all ] && ! "$home/bin/python" -c 'import mcp' 2>/dev/null || return 0
    python3 -m venv "$home" && "$home/bin/python" -m pip install -q --disable-pip-version-check --require-hashes \
        -r "$(dirname "$0")/../tests/mcp.txt" || { rm -rf "$home"; echo "setup: the Python package mcp is not there" >&2; }
}
if [ -z "$missing" ]; then
    engines "${1:-base}" && client "${1:-base}"
    exit
fi

echo "setup: missing Debian packages:$missing" >&2
if ! command -v apt-get >/dev/null 2>&1; then
    cat >&2 <<EOF
setup: no apt-get here. Install the equivalents of: $base ($extra for .ci/run)
  Fedora  dnf install gcc make pkgconf gsl-devel cjson-devel libcsv-devel libcurl-devel sqlite-devel zlib-devel check-devel gnuplot
  Arch    pacman -S gcc make pkgconf gsl cjson curl sqlite zlib check gnuplot; libcsv from the AUR
  macOS   brew install gsl cjson libcsv curl sqlite check gnuplot pkgconf (not tried: real execution and the pools of
          processes use Linux calls)
EOF
    exit 1
fi
apt="env DEBIAN_FRONTEND=noninteractive apt-get -qq -o DPkg::Lock::Timeout=300"
if [ "$(id -u)" -ne 0 ]; then
    if ! command -v sudo >/dev/null 2>&1; then
        echo "setup: neither root nor sudo. Ask an administrator for: apt-get install$missing" >&2
        exit 1
    fi
    # A password prompt out of a build is a surprise: it is announced, and only taken at a terminal, in CI or when told.
    if [ "${XPUSIM_SUDO:-}" != yes ] && [ -z "${CI:-}" ]; then
        if [ ! -t 0 ] || [ ! -t 2 ]; then
            echo "setup: install them yourself (apt-get install$missing), or allow sudo: XPUSIM_SUDO=yes make" >&2
            exit 1
        fi
        printf 'setup: install them with sudo apt-get? [y/N] ' >&2
        read -r answer
        case "$answer" in
        y | Y | yes) ;;
        *)
            echo "setup: not installed. By hand: apt-get install$missing" >&2
            exit 1
            ;;
        esac
    fi
    apt="sudo $apt"
fi
# shellcheck disable=SC2086
$apt update && $apt install -y $missing >/dev/null
status=$?
[ $status -eq 0 ] || echo "setup: apt-get failed; install by hand:$missing" >&2
[ $status -eq 0 ] || exit $status
engines "${1:-base}" && client "${1:-base}"
