#!/usr/bin/env python3
"""What follows from the structs of sim/api, written into the files that repeat it:

    sim/api/policy.h                      POLICY_LAYOUT, the hash of all structs and enums, and of
                                          those of the helpers that plug-ins share
    policies/python/xpusim/fields.py      the classes of the Python package
    docs/policy-protocol.md               the members of events, objects and options

    python3 sim/record/generate.py [--check]    --check changes nothing and names what is old
"""
import glob
import os
import re
import sys
import textwrap
import zlib

os.chdir(os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", ".."))


def text(path):
    with open(path, encoding="utf-8") as f:
        return f.read()


HEADERS = {h: text("sim/api/%s.h" % h) for h in ("device", "request", "pass", "policy")}
ALL = "\n".join(HEADERS.values())
HELPERS = [text(h) for h in sorted(glob.glob("policies/common/*.h")) + ["sim/base/map.h"]]
WORDS = {name: re.findall(r'"(\w+)"', body)
         for name, body in re.findall(r"words_(\w+)\[\] = {(.*?)}", text("sim/base/words.c"), re.S)}
WORDS["device_kinds"] = re.findall(r'X\(\w+, "(\w+)"', HEADERS["device"])


def layout():
    """Of the declarations without comments and blanks."""
    bare = re.sub(r"/\*.*?\*/", "", "\n".join([ALL] + HELPERS), flags=re.S)
    blocks = re.findall(r"^(?:struct|enum) \w+ {.*?^};", bare, re.S | re.M)
    blocks += re.findall(r"^(?:CALL|TELL).*?\n(?=\n|$)", text("sim/api/calls.def"), re.S | re.M)
    blocks += re.findall(r"^enum \w+ {[^\n]*};", bare, re.M)
    return zlib.crc32(re.sub(r"\s", "", "".join(blocks)).encode())


def listed(name):
    """Members of a list, each with the words of its enum."""
    body = re.search(r"#define %s_FIELDS\([XW, ]*\)((?:[^\n]*\\\n)*[^\n]*)" % name, ALL).group(1)
    rows = re.findall(r"([XW])\((\w+)(?:,\s*(\w+))?(?:,[\s\\]*(\w+))?\)", body)
    return [(m, next((w[6:] for w in (a, b) if w.startswith("words_")), None)) for _, m, a, b in rows]


def members(struct):
    """C type and comment of each member of a struct."""
    body = re.search(r"^struct %s {\n(.*?)^};" % struct, ALL, re.S | re.M).group(1)
    out = {}
    for kind, names, comment in re.findall(r"^    ([\w ]+[ *])(\w+(?:\[\w+\])?(?:, \w+)*);[ ]*(?:/\*(.*?)\*/)?", body, re.M | re.S):
        for name in names.split(","):
            out[name.strip().split("[")[0]] = (kind.strip(), " ".join(comment.split()))
    return out


# ---- Python ----

def python_type(c, name, words):
    if words or c == "char":
        return "str"
    if c == "int64_t" and name.endswith("_ns"):
        return "int"
    if re.fullmatch(r"u?int\d+_t", c):
        return "int"
    return {"bool": "bool", "double": "float", "const struct pass *": "Any"}[c]


def attribute(name):
    return name + "_" if name == "pass" else name


def declare(struct, rows, optional=(), zero=()):
    of = members(struct)
    out = []
    for name, words in rows:
        c, comment = of[name]
        kind = python_type(c, name, words)
        kind = "Optional[%s]" % kind if name in optional else kind
        comment = re.sub("NULL|TIME_NEVER_NS", "None", comment)
        comment = ", ".join('"%s"' % w for w in WORDS[words]) if words else comment
        line = "    %s: %s%s" % (attribute(name), kind, " = 0" if name in zero else "")
        long = textwrap.wrap(comment, 112, initial_indent="    # ", subsequent_indent="    # ")
        out += [line + "  # " + comment] if comment and len(line) + len(comment) < 116 else long + [line]
    return out


def tuple_class(name, struct, rows, last=(), zero=()):
    return ["", "", "class %s(NamedTuple):" % name] + declare(struct, rows, (), zero) + ["    " + x for x in last]


def unpack(function, rows):
    """A method that takes a message's members, and returns those behind them."""
    names = ", ".join(["self." + attribute(m) for m, _ in rows])
    body = textwrap.wrap("(%s, *rest)" % names, 108, initial_indent="        ", subsequent_indent="         ")
    body[-1] += " = row"
    return ["", "    def %s(self, row: Sequence[Any]) -> Sequence[Any]:" % function] + body + ["        return rest"]


def object_class(name, struct, lists, defaults=None):
    rows = list(dict.fromkeys(sum((listed(x) for x, _ in lists), [])))
    of = members(struct)
    never = [m for m, _ in rows if of[m][0] == "int64_t" and m != "arrival_ns"]
    slots = textwrap.wrap("__slots__ = (%s)" % ", ".join('"%s"' % attribute(m) for m, _ in rows), 112,
                          initial_indent="    ", subsequent_indent="                 ")
    out = ["", "", "class %s:" % name] + slots + [""] + declare(struct, rows, never)
    for x, function in lists:
        out += unpack(function, listed(x))
        told = [m for m, _ in listed(x)]
        for m, words in rows if function == defaults else ():
            if m not in told:
                kind = python_type(of[m][0], m, words)
                value = "None" if m in never or kind == "Any" else "'%s'" % WORDS[words][0] if words else kind + "()"
                out.insert(-1, "        self.%s = %s" % (attribute(m), value.replace("'", '"').replace("bool()", "False")
                                                         .replace("int()", "0")))
    return out


def python():
    out = ['"""Members of the structs of sim/api. Written by `make generate`; do not edit."""', "",
           "from __future__ import annotations", "", "from typing import Any, NamedTuple, Optional, Sequence, Tuple"]
    out += tuple_class("Device", "device", listed("DEVICE"), ["index: int"])
    out += tuple_class("MachineFields", "machine", [("name", None)] + listed("MACHINE"), ["devices: Tuple[Device, ...]"])
    out += tuple_class("Llm", "llm", listed("LLM"), ["layer: Tuple[str, ...]  # " + ", ".join(WORDS["ops"])])
    out += tuple_class("Shape", "work_shape", listed("WORK_SHAPE"), (), ("far_pairs", "far_keys"))
    out += tuple_class("Estimate", "estimate", listed("ESTIMATE"))
    out += tuple_class("MachineState", "machine_state", listed("MACHINE_STATE"))
    out += object_class("RequestFields", "request", [("REQUEST_ARRIVED", "_arrived"), ("REQUEST_CHANGED", "_changed")],
                        "_arrived")
    out += object_class("PassFields", "pass", [("PASS_CHANGED", "_changed"), ("PASS_FORMED", "_formed")])
    out += object_class("LaunchFields", "launch", [("LAUNCH_CHANGED", "_changed"), ("LAUNCH_MADE", "_made")])
    out += ["", "", "LAUNCH_OPTIONS = (%s)" % ", ".join('"%s"' % m for m, _ in listed("LAUNCH_SPEC")),
            "PREEMPT_OPTIONS = (%s)" % ", ".join('"%s"' % m for m, _ in listed("PREEMPT_SPEC"))]
    return "\n".join(out) + "\n"


# ---- the page ----

def row(name):
    return ", ".join(" ".join("`%s`" % w for w in WORDS[words]) if words else m + (" (0: none)" if m == "pass" else "")
                     for m, words in listed(name))


def options(name):
    return ", ".join("`%s`" % m + (" (%s)" % ", ".join("`%s`" % w for w in WORDS[words]) if words else "")
                     for m, words in listed(name))


def page():
    lines = {
        r"\| `arrived` \|": "| `arrived` | %s |" % row("REQUEST_ARRIVED"),
        r"\| request \|": "| request | request, %s |" % row("REQUEST_CHANGED"),
        r"\| pass \|": "| pass | pass, %s; the first time also %s, [%s] |" % (
            row("PASS_CHANGED"), row("PASS_FORMED"), row("WORK_SHAPE")),
        r"\| launch \|": "| launch | launch, %s; the first time also %s |" % (row("LAUNCH_CHANGED"), row("LAUNCH_MADE")),
        r"\| `launch` \|": "| `launch` | launch, pass, device, options? | `sched_launch`; options, as an object, change "
                           "`sched_launch_rest`: %s |" % options("LAUNCH_SPEC"),
        r"\| `preempt` \|": "| `preempt` | launch, {%s}? | `sched_preempt` |" % options("PREEMPT_SPEC"),
        r"\| `estimate` \|": "| `estimate` | [shape, as of a pass], op (%s), device, rows?, chunk_rows?, graph? | [%s], or "
                             "the name of an error |" % (", ".join("`%s`" % w for w in WORDS["ops"]), row("ESTIMATE")),
        r"\| `machine_state` \|": "| `machine_state` | | [%s] |" % row("MACHINE_STATE"),
    }
    out = text("docs/policy-protocol.md")
    for start, line in lines.items():
        out, n = re.subn("^" + start + ".*$", line.replace("\\", r"\\"), out, flags=re.M)
        if n != 1:
            sys.exit("generate.py: docs/policy-protocol.md: %d lines begin with %s" % (n, start))
    return out


def main():
    number = "#define POLICY_LAYOUT %du" % layout()
    files = {"sim/api/policy.h": re.sub(r"^#define POLICY_LAYOUT .*$", number, HEADERS["policy"], flags=re.M),
             "policies/python/xpusim/fields.py": python(), "docs/policy-protocol.md": page()}
    old = [p for p, new in files.items() if not os.path.exists(p) or text(p) != new]
    if "--check" in sys.argv:
        for p in old:
            print("%s is older than the structs of sim/api: run `make generate`" % p)
        sys.exit(bool(old))
    for p in old:
        with open(p, "w", encoding="utf-8") as f:
            f.write(files[p])


main()
