"""Calls between the files of a folder must not run in circles. Prints each circle; exit 1 with one.

    python3 tests/knots.py sim/engine

A file calls another when it names a function or table that the other defines. A header's inline functions call
for whoever uses them. `--draw` prints the files in layers, each above those that it calls.
"""
import glob
import os
import re
import sys

NO_CODE = re.compile(r'/\*.*?\*/|"(?:\\.|[^"\\])*"', re.S)
NAME = re.compile(r"(?<!struct )(?<!enum )\b[a-z]\w+")
FUNCTION = re.compile(r"^(?!static|typedef|struct \w+ \{|#)[a-z_][\w \*]*?[ \*](\w+)\([^;{]*\)\s*\{", re.M)
TABLE = re.compile(r"^const struct \w+ (\w+) =", re.M)
# Calls that go up, and what for.
UP = {
    "command_find": "a command may run another, and the table has all of them",
    "commands": "xpusim help prints the table of commands, and is in it",
    "commands_usage": "the same",
    "timeline_at": "a hook of a track moves the window, which opens and closes the tracks",
}
INLINE = re.compile(r"^static inline [\w \*]*?[ \*](\w+)\([^;{]*\)\s*\{(.*?)^\}", re.M | re.S)


def calls_of(folder):
    text, home, inline = {}, {}, {}
    for path in glob.glob(folder + "/*.[ch]"):
        text[path] = NO_CODE.sub("", open(path, encoding="utf-8").read())
        if path.endswith(".c"):
            own = FUNCTION.findall(text[path]) + TABLE.findall(text[path])
            home.update((name, path) for name in own if name not in UP)
        else:
            inline.update((name, set(NAME.findall(body))) for name, body in INLINE.findall(text[path]))
    calls = {path: set() for path in text if path.endswith(".c")}
    for path, to in calls.items():
        names, seen = set(NAME.findall(text[path])), set()
        while names - seen:
            name = (names - seen).pop()
            seen.add(name)
            names |= inline.get(name, set())
        to.update(home[name] for name in names if home.get(name, path) != path)
    return calls


def layers_of(calls):
    """Files whose calls are all in layers below, again and again; and those that never are."""
    layers, left = [], dict(calls)
    while layer := sorted(path for path, to in left.items() if not to & left.keys()):
        layers.append(layer)
        left = {path: to for path, to in left.items() if path not in layer}
    return layers, left


def main(arguments):
    bad = 0
    for folder in (a for a in arguments if a != "--draw"):
        layers, left = layers_of(calls_of(folder))
        for layer in reversed(layers) if "--draw" in arguments else ():
            print("  ".join(os.path.basename(path) for path in layer))
        for path, to in sorted(left.items()):
            print(f"{path} is in a circle of calls, or above one: it calls {', '.join(sorted(to & left.keys()))}")
            bad = 1
    return bad


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
