#!/bin/sh
# From nothing to the figure: a bare Debian root (debootstrap), the committed tree in it, the two steps of the README,
# and every command of the tutorial. Root and the network of Debian's packages are needed; a quarter of an hour. By
# hand, not in CI: tests/clean_root.sh [FOLDER]
set -eu
cd "$(dirname "$0")/.."
root=${1:-$(mktemp -d)}
command -v debootstrap >/dev/null 2>&1 || { echo "clean_root: debootstrap is not installed"; exit 1; }
[ -e "$root/bin/sh" ] || debootstrap --variant=minbase bookworm "$root" ${MIRROR:+"$MIRROR"} >"$root.log" 2>&1 || { tail -5 "$root.log"; exit 1; }
mkdir -p "$root/src"
git archive HEAD | tar -x -C "$root/src"
mount --bind /proc "$root/proc"
mount --bind /dev "$root/dev"
trap 'umount "$root/proc" "$root/dev"' EXIT
cp /etc/resolv.conf "$root/etc/resolv.conf"
in_root() { chroot "$root" env -i PATH=/usr/sbin:/usr/bin:/sbin:/bin HOME=/root LANG=C.UTF-8 DEBIAN_FRONTEND=noninteractive "$@"; }
in_root sh -c 'apt-get -qq update && apt-get -qq install -y make >/dev/null'
in_root sh -c 'cd /src && make -s -j2 && make -s demo >/dev/null && ls -l build/demo/report.html && sh tests/golden/tutorial.sh'
echo "clean_root: set up, built, demo and tutorial as they stand"
