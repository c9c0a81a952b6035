#!/bin/sh
# The Debian package, built from what is committed, put into a root of its own, used there, and taken out again.
# Needs debhelper; a whole build, so `make deb` and .ci/run run it, not `make check`.
set -eu
cd "$(dirname "$0")/.."
top=$PWD
out=$top/${BUILD:-build}/deb
version=$(sed -n 's/.*XPUSIM_VERSION "\(.*\)"/\1/p' sim/base/version.h)
command -v dh >/dev/null 2>&1 || { echo "package: debhelper is not installed"; exit 1; }
rm -rf "$out"
mkdir -p "$out/xpusim-$version" "$out/root"
git archive HEAD -- . ':!debian' | tar -x -C "$out/xpusim-$version"
tar -C "$out" -czf "$out/xpusim_$version.orig.tar.gz" xpusim-$version
git archive HEAD debian | tar -x -C "$out/xpusim-$version"
[ ! -f "$top/${BUILD:-build}/xpusim.wasm" ] || export XPUSIM_WASM="$top/${BUILD:-build}/xpusim.wasm"
(cd "$out/xpusim-$version" && dpkg-buildpackage -us -uc -j2) >"$out/log" 2>&1 || { tail -30 "$out/log"; exit 1; }
ls "$out"/xpusim_*.dsc "$out"/xpusim_*.deb

root=$out/root
mkdir -p "$root/var/lib/dpkg/info" "$root/var/lib/dpkg/updates" "$root/var/lib/dpkg/triggers"
: >"$root/var/lib/dpkg/status"
pack() { dpkg --root="$root" --log=/dev/null --force-not-root --force-depends --force-script-chrootless "$@" >>"$out/log" 2>&1; }
pack -i "$out"/xpusim_*.deb
test "$(dpkg --root="$root" -s xpusim | sed -n 's/^Status: //p')" = "install ok installed"
cd /
env -u XPUSIM_DATA_DIR "$root/usr/bin/xpusim" --version
env -u XPUSIM_DATA_DIR "$root/usr/bin/xpusim" compare --policy openvino-cb --policy agent-xpu-v2 --replications 2 -q \
    --workload mixed:duration_s=120 | sed -n 1,4p
test -s "$root/usr/share/man/man1/xpusim-compare.1.gz"
test -s "$root/usr/include/xpusim/sim/api/policy.h"
[ -z "${XPUSIM_WASM:-}" ] || cmp "$XPUSIM_WASM" "$root/usr/share/xpusim/xpusim.wasm"
pack -r xpusim
left=$(find "$root" -path "$root/var" -prune -o -type f -print)
test -z "$left" || { echo "left behind: $left"; exit 1; }
du -h "$out"/xpusim_*.deb | sed 's,/.*/,,'
echo "package: built, installed, run, removed"
