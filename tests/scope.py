#!/usr/bin/env python3
"""What a scope frees (sim/base/scope.h) is not freed by hand as well. Prints every breach; exit 1."""
import re
import subprocess
import sys

DECLARED = re.compile(r"\b(OWNED|SCOPED\((\w+)\))\s+[^;={(]*?[\s*](\w+)(?:\s*=|;)")
# The function that a pointer's own ending calls.
POINTERS = {"json_drop": "cJSON_Delete", "vector_drop": "gsl_vector_free", "matrix_drop": "gsl_matrix_free"}


def by_hand(text):
    """Yields (position, name, call) of what is freed twice, in the text of one file."""
    for m in DECLARED.finditer(text):
        end = text.find("\n}", m.end())
        rest = text[m.end() : end if end >= 0 else len(text)]
        fini = m.group(2)
        if fini is None:
            call = r"\b(?:free|cJSON_free)\((?:\(void \*\))?%s\)"
        elif fini.endswith("_drop"):
            call = r"\b%s\(%%s\)" % POINTERS.get(fini, fini.replace("_drop", "_free"))
        else:
            call = r"\b%s\(&%%s\)" % fini
        again = re.search(call % re.escape(m.group(3)), rest)
        if again:
            yield m.end() + again.start(), m.group(3), again.group()


def main():
    bad = 0
    for path in subprocess.check_output(["git", "ls-files", "*.c"], text=True).split():
        try:
            text = open(path, encoding="utf-8").read()
        except FileNotFoundError:
            continue
        for at, name, call in by_hand(text):
            line = text.count("\n", 0, at) + 1
            print(f"{path}:{line}: {call}, but the scope of {name} frees it")
            bad = 1
    return bad


sys.exit(main())
