#!/bin/sh
# A release of the version in sim/base/version.h: everything is checked, the changelog gets its date, and a tag is set. Nothing
# is pushed. To begin another version: change version.h, run python3 .ci/version.py --write, and begin a section in CHANGELOG.md.
set -eu
cd "$(dirname "$0")/.."
version=$(sed -n 's/.*XPUSIM_VERSION "\(.*\)"/\1/p' sim/base/version.h)
stop() {
    echo "release: $*"
    exit 1
}
test -z "$(git status --porcelain)" || stop "the tree has changes that are not committed"
git rev-parse -q --verify "refs/tags/v$version" >/dev/null && stop "v$version is tagged already: change the version first"
python3 .ci/version.py || stop "files that repeat the version differ: python3 .ci/version.py --write"
grep -q "^## $version (unreleased)$" CHANGELOG.md || stop "CHANGELOG.md has no section of $version that is unreleased"
bash .ci/run
make wheel
test -z "$(git status --porcelain)" || stop "the checks changed files of the tree"
sed -i "s/^## $version (unreleased)$/## $version ($(date -u +%Y-%m-%d))/" CHANGELOG.md
git commit -q -m "Release $version" CHANGELOG.md
git tag -a "v$version" -m "xpusim $version"
echo "release: v$version is tagged; git push origin HEAD v$version publishes it"
