"""The version is in sim/base/version.h. Without arguments: do the files that repeat it say the same? --write: make them."""

import os
import re
import sys

TOP = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
PLACES = (("CITATION.cff", r"^(version: )(\S+)()$"), ("policies/python/pyproject.toml", r'^(version = ")([^"]+)(")$'),
          ("debian/changelog", r"\A(xpusim \()([^-]+)(-1\) )"), ("CHANGELOG.md", r"\A(# Changelog\n\n## )(\S+)( \()"),
          ("docs/policy-protocol.md", r'^(    \{"xpusim":")([^"]+)(",)'))


def main(write):
    def read(name):
        with open(os.path.join(TOP, name), encoding="utf-8") as f:
            return f.read()

    version = re.search(r'define XPUSIM_VERSION "(.+)"', read("sim/base/version.h")).group(1)
    bad = False
    for name, pattern in PLACES:
        text = read(name)
        found = re.search(pattern, text, re.M)
        if found is None or found.group(2) != version:
            if not write or found is None:
                print("version: %s has %s, and sim/base/version.h %s" % (name, found and found.group(2), version))
                bad = True
                continue
            with open(os.path.join(TOP, name), "w", encoding="utf-8") as f:
                f.write(text[:found.start(2)] + version + text[found.end(2):])
    return bad


sys.exit(main(sys.argv[1:] == ["--write"]))
