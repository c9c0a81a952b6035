#!/bin/sh
# The Containerfile built and used for real where no registry can be reached: its base images are a debootstrap root,
# imported under the names that the file asks for; buildah runs its steps without a daemon and without namespaces.
# Root, buildah, debootstrap and the network of Debian's packages are needed; half an hour on two cores. By hand, not in
# CI: tests/container.sh [FOLDER], which is kept, with the root in it, where it is given
set -eu
cd "$(dirname "$0")/.."
if [ $# -gt 0 ]; then
    dir=$1
else
    dir=$(mktemp -d)
    trap 'rm -rf "$dir"' EXIT
fi
for p in buildah debootstrap; do
    command -v $p >/dev/null 2>&1 || { echo "container: $p is not installed"; exit 1; }
done
b() { command="$1"; shift; buildah --root "$dir/images" --runroot "$dir/run" --storage-driver vfs "$command" "$@"; }

root=$dir/root
mkdir -p "$dir/context"
[ -e "$root/bin/sh" ] || debootstrap --variant=minbase bookworm "$root" ${MIRROR:+"$MIRROR"} >"$dir/log" 2>&1 || { tail -5 "$dir/log"; exit 1; }
tar -C "$root" -cf "$dir/base.tar" .
printf 'FROM scratch\nADD base.tar /\n' >"$dir/base"
b build --isolation chroot -t docker.io/library/debian:12 -f "$dir/base" "$dir" >"$dir/log" 2>&1 || { tail -5 "$dir/log"; exit 1; }
b tag docker.io/library/debian:12 docker.io/library/debian:12-slim

git archive HEAD | tar -x -C "$dir/context"
b build --isolation chroot --pull-never -t xpusim -f Containerfile "$dir/context" >"$dir/log" 2>&1 || { tail -30 "$dir/log"; exit 1; }
grep -o 'STEP .*' "$dir/log"
b inspect --type image --format '{{.OCIv1.Config.Entrypoint}}' xpusim | grep -Fx '[xpusim]'
box=$(b from --pull-never xpusim)
b run --isolation chroot "$box" -- xpusim --version
b run --isolation chroot "$box" -- xpusim compare --policy fcfs --policy agent-xpu-v2 --replications 2 --quiet \
    --workload mixed:duration_s=120
b run --isolation chroot "$box" -- sh -c 'cd /tmp && xpusim compare --policy fcfs --policy agent-xpu-v2 --replications 2 \
    --quiet --json --workload mixed:duration_s=120 >r.json && xpusim plot headline r.json -o . && ls -l headline.svg'
b images xpusim
echo "container: built as the Containerfile says, run, a figure drawn"
