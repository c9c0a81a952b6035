#!/bin/sh
# Fetches the sources of three libraries from Debian into a folder, once: sources.sh FOLDER. What is missing for that is one
# sentence and exit 1; nothing but `make wasm` needs it.
set -u
to=$1
need="clang-14 lld-14 llvm-14 wasi-libc libclang-rt-14-dev-wasm32 dpkg-dev"
lacks() {
    echo "make wasm: $1; nothing but a page that computes (\`view --recompute\`) needs it" >&2
    exit 1
}
command -v apt-get >/dev/null || lacks "takes the sources of GSL, cJSON and libcsv from Debian, and there is no apt-get here"
for tool in clang-14 wasm-ld-14 llvm-ar-14 dpkg-source; do
    command -v $tool >/dev/null || lacks "$tool is missing (apt-get install $need)"
done
[ -e /usr/include/wasm32-wasi/stdio.h ] || lacks "wasi-libc is missing (apt-get install $need)"
ls /usr/lib/llvm-14/lib/clang/*/lib/wasi/*.a >/dev/null 2>&1 ||
    lacks "libclang-rt-14-dev-wasm32 is missing (apt-get install $need)"
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
chmod 755 "$work"
mkdir -p "$work/lists/partial" "$work/cache/archives/partial" "$to"
# The machine's own lists have no sources: private lists of its mirrors, with sources.
{
    sed -n 's/^deb /deb-src /p' /etc/apt/sources.list 2>/dev/null
    grep -hE '^(deb) .*debian' /etc/apt/sources.list.d/*.list 2>/dev/null | sed 's/^deb /deb-src /'
    awk '/^URIs:/ { uri = $2 } /^Suites:/ { $1 = ""; suites = $0 } /^Components:/ { $1 = ""; n = split(suites, s, " "); if (uri ~ /debian/) for (i = 1; i <= n; i++) print "deb-src " uri " " s[i] $0 }' \
        /etc/apt/sources.list.d/debian.sources 2>/dev/null
} | sort -u >"$work/sources"
apt="apt-get -qq -o Dir::Etc::sourcelist=$work/sources -o Dir::Etc::sourceparts=/dev/null -o Dir::State::lists=$work/lists -o Dir::Cache=$work/cache"
cd "$work" || exit 1
$apt update >log 2>&1 && $apt source gsl cjson libcsv >>log 2>&1 || { tail -n 3 log >&2; lacks "the sources of GSL, cJSON and libcsv could not be fetched"; }
for library in gsl cjson libcsv; do
    rm -rf "${to:?}/$library"
    mv "$work/$library"-*/ "$to/$library" || lacks "the source of $library has another name than expected"
done
touch "$to/fetched"
