"""Names and counts in hand-written pages and header comments that the sources no longer have.

    python3 tests/helpers/stale_check.py XPUSIM

* A name in backticks with an underscore must be a word of some source, data file or output of `list`.
* A path in backticks or in a header's comment must exist, from the root or from the page's folder.
* "N policies", "N contention models" and the like must be what `list` prints.
Prints each that is not so; exit status 1 then."""
import os
import re
import subprocess
import sys

xpusim = sys.argv[1]
files = subprocess.run(["git", "ls-files"], capture_output=True, text=True).stdout.split()
if not files:  # not a git checkout: what is there
    files = [os.path.relpath(os.path.join(d, f)) for d, _, fs in os.walk(".") for f in fs if "/build" not in d and "/." not in d]
HISTORY = ("CHANGELOG.md", "PROFILE.md", "CHANGED.md")  # they say what was
pages = [f for f in files if f.endswith(".md") and not f.endswith(HISTORY)]
sources = [f for f in files if not f.endswith(".md") and not f.endswith(".svg") and os.path.isfile(f)]
words = set()
for f in sources:
    with open(f, errors="replace") as h:
        words.update(re.findall(r"[A-Za-z_][A-Za-z0-9_]*", h.read()))
for what in ("metric", "setting", "soc-keys", "llm-keys"):
    out = subprocess.run([xpusim, "list", what], capture_output=True, text=True).stdout
    words.update(re.findall(r"[A-Za-z_][A-Za-z0-9_]*", out))

ELSEWHERE = {  # a pattern of names, a folder that a command makes, a system's header, a file of a sweep
    "module_noun_verb", "mine/RULES.md", "curl/curl.h", "slurm/array.sh"}
bad = []
NAME = re.compile(r"^[a-z][a-z0-9]*(?:_[a-z0-9]+)+(?:\(\))?$")
PATH = re.compile(r"^(?:\.\./)*(?:[A-Za-z0-9_.-]+/)+[A-Za-z0-9_.-]+\.(?:c|h|py|sh|md|json|csv|gp|def|txt)$")


def exists(path, folder):
    return any(os.path.exists(os.path.join(base, path)) for base in (".", folder, os.path.dirname(folder) or "."))


for page in pages:
    with open(page) as h:
        for number, line in enumerate(h, 1):
            if line.startswith("    "):
                continue  # a command or its output, which other tests run
            for token in set(re.findall(r"`([^`]+)`", line)) - ELSEWHERE:
                if NAME.match(token) and token.rstrip("()") not in words:
                    bad.append(f"{page}:{number}: `{token}` is in no source")
                if PATH.match(token) and not token.startswith("build/") and not exists(token, os.path.dirname(page)):
                    bad.append(f"{page}:{number}: `{token}` does not exist")
for header in (f for f in sources if f.endswith(".h")):
    with open(header) as h:
        text = h.read()
    for comment in re.findall(r"/\*.*?\*/", text, re.S):
        for path in re.findall(r"[a-z_]+(?:/[A-Za-z0-9_.-]+)+\.(?:h|c|md|py|sh)\b", comment):
            if path not in ELSEWHERE and not exists(path, os.path.dirname(header)):
                bad.append(f"{header}: {path} does not exist")


def listed(what, wanted=lambda line: True):
    out = subprocess.run([xpusim, "list", what], capture_output=True, text=True).stdout.splitlines()
    return len({line.split()[0] for line in out if line[:1].islower() and wanted(line)})


NUMBERS = "one two three four five six seven eight nine ten eleven twelve".split()
counts = {"policies": listed("policy", lambda line: " = " not in line), "contention models": listed("contention")}
for page in ("README.md", "docs/concepts/selection.md", "docs/concepts/contention.md", "docs/concepts/policies.md"):
    with open(page) as h:
        text = h.read()
    for noun, true in counts.items():
        for said in re.findall(r"(?:# |\b[Aa]ll |comparison of )(\d+|[a-z]+) " + noun, text):
            value = int(said) if said.isdigit() else NUMBERS.index(said) + 1 if said in NUMBERS else true
            if value != true:
                bad.append(f"{page}: {said} {noun}, and there are {true}")

with open("README.md") as readme, open("docs/headlines.md") as headlines:
    said = re.search(r"each repeated here on (\d+) traces", readme.read()).group(1)
    made = re.search(r"^(\d+) traces from seed", headlines.read(), re.M).group(1)
    if said != made:
        bad.append(f"README.md: {said} traces decide the headlines, and docs/headlines.md has {made}")

print("\n".join(bad) if bad else f"{len(pages)} pages: every name and path is there")
sys.exit(1 if bad else 0)
