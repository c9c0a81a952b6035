#!/bin/sh
# `make install` must put each file in its place, and `make uninstall` must take all of it back. The
# man pages and the completions come from the tables of the options.
set -u
cd "$(dirname "$0")/../.." || exit 2
build=${BUILD:-build}
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
bad=0
fail() { echo "FAILED: $*"; bad=1; }

make -s install-built BUILD="$build" PREFIX=/usr/local DESTDIR="$dir" >"$dir/log" 2>&1 || { cat "$dir/log"; exit 1; }
top=$dir/usr/local
for f in bin/xpusim share/man/man1/xpusim.1 share/man/man1/xpusim-compare.1 share/pkgconfig/xpusim.pc \
    share/bash-completion/completions/xpusim share/fish/vendor_completions.d/xpusim.fish \
    share/zsh/site-functions/_xpusim include/xpusim/sim/api/policy.h share/xpusim/hwmodels/soc/core-ultra-5-125h.json \
    share/xpusim/schemas/soc.json share/xpusim/schemas/result-compare.json; do
    [ -s "$top/$f" ] || fail "$f is not there"
done
# every command has its page, and every page every option of --help
for c in $("$top/bin/xpusim" help | sed -n 's/^  \([a-z-]*\) .*/\1/p'); do
    page=$top/share/man/man1/xpusim-$c.1
    said=$(sed 's/\\-/-/g' "$page")
    for o in $("$top/bin/xpusim" help "$c" | sed -nE 's/^  (-[a-z], )?--([a-z-]+).*/\2/p' | grep -v '^b-'); do
        case $said in *"$o"*) ;; *) fail "--$o is not in the page of $c" ;; esac
    done
    if command -v groff >/dev/null 2>&1; then
        groff -man -Tascii -ww "$page" 2>&1 >/dev/null | grep . && fail "$page: groff complains"
    fi
done
# completion, as a shell asks for it
completed() { # words...
    PATH=$top/bin:$PATH bash -c '. "$1"; shift; COMP_WORDS=("$@"); COMP_CWORD=$(($# - 1)); _xpusim; echo "${COMPREPLY[*]}"' \
        - "$top/share/bash-completion/completions/xpusim" "$@"
}
if command -v bash >/dev/null 2>&1; then
    [ "$(completed xpusim comp)" = compare ] || fail "comp completes to $(completed xpusim comp)"
    [ "$(completed xpusim compare --repl)" = --replications ] || fail "--repl completes to $(completed xpusim compare --repl)"
    [ "$(XPUSIM_DATA_DIR=$PWD completed xpusim run --policy agent-xpu-v2)" = agent-xpu-v2 ] || fail "policies are not completed"
fi
# The program finds its files wherever the prefix is moved, and says where it looked when they are
# missing.
mkdir "$dir/moved"
cp -r "$top" "$dir/moved/prefix"
(cd / && env -u XPUSIM_DATA_DIR "$dir/moved/prefix/bin/xpusim" compare --policy fcfs --policy edf --replications 2 -q \
    --workload mixed:duration_s=60 >"$dir/out" 2>&1) || fail "a moved prefix: $(cat "$dir/out")"
(cd / && env -u XPUSIM_DATA_DIR "$dir/moved/prefix/bin/xpusim" validate --points reference --soc rk3588 -q 2>&1) |
    grep -q '95 %' || fail "a moved prefix has no intervals"
# and the suite takes a policy there, built against the installed headers by what pkg-config says
if command -v pkg-config >/dev/null 2>&1; then
    flags=$(PKG_CONFIG_PATH="$dir/moved/prefix/share/pkgconfig" pkg-config --cflags xpusim) ||
        fail "pkg-config does not know xpusim"
    # shellcheck disable=SC2086
    ${CC:-gcc} -std=c17 -D_POSIX_C_SOURCE=200809L -ffp-contract=off -fPIC -shared $flags -o "$dir/skeleton.so" \
        "$dir/moved/prefix/share/xpusim/policies/skeleton/skeleton.c" || fail "the installed skeleton does not build"
    (cd "$dir" && env -u XPUSIM_DATA_DIR "$dir/moved/prefix/bin/xpusim" check-policy "$dir/skeleton.so" --loads 1 >"$dir/out" 2>&1) || fail "the installed conformance suite: $(tail -3 "$dir/out")"
fi
# A plug-in's Makefile takes the headers of the prefix whose xpusim is used, by default.
(PATH=$dir/moved/prefix/bin:$PATH && cd "$dir" && unset XPUSIM_INCLUDE XPUSIM && xpusim new-policy mine -o mine >/dev/null &&
    make -s -C mine >"$dir/out" 2>&1 && [ -s mine/mine.so ]) || fail "a new policy under a moved prefix: $(cat "$dir/out")"
cp "$dir/moved/prefix/bin/xpusim" "$dir/moved/alone"
without_data() { # words of env...
    (cd / && env -u XPUSIM_DATA_DIR "$@" "$dir/moved/alone" list soc >"$dir/out" 2>&1)
    [ $? = 2 ] && grep -q "^xpusim: error: no data in " "$dir/out" || fail "without data: $(cat "$dir/out")"
}
without_data XPUSIM_DATA_DIR="$dir/moved"
if [ -d /usr/local/share/xpusim ]; then
    echo "skipped: a program without data: xpusim is installed in /usr/local, where it looks last"
else
    without_data
fi
# Packages are missing and the user is not root. sudo is used on request only, and not from a build
# that cannot ask.
mkdir "$dir/fake"
printf '#!/bin/sh\necho 1000\n' >"$dir/fake/id"
printf '#!/bin/sh\nexit 1\n' >"$dir/fake/pkg-config"
printf '#!/bin/sh\necho "$*" >>"%s"\n' "$dir/sudo" >"$dir/fake/sudo"
printf '#!/bin/sh\nexit 0\n' >"$dir/fake/apt-get"
chmod +x "$dir"/fake/*
env -u CI -u XPUSIM_SUDO PATH="$dir/fake:$PATH" sh .ci/setup.sh base </dev/null >"$dir/out" 2>&1
[ $? = 1 ] && [ ! -e "$dir/sudo" ] && grep -q "apt-get install.* check" "$dir/out" || fail "setup without a word: $(cat "$dir/out")"
env -u CI XPUSIM_SUDO=yes PATH="$dir/fake:$PATH" sh .ci/setup.sh base </dev/null >"$dir/out" 2>&1
grep -q "install.* check" "$dir/sudo" || fail "setup, told to: $(cat "$dir/out")"
make -s uninstall PREFIX=/usr/local DESTDIR="$dir" >/dev/null 2>&1 || fail "make uninstall"
left=$(find "$top" -type f)
[ -z "$left" ] || fail "left behind: $left"
exit $bad
