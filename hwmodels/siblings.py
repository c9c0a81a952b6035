#!/usr/bin/env python3
"""Holds shipped machines to those that they were made from.

usage: python3 hwmodels/siblings.py XPUSIM [--write] [SOC ...]

A number whose source begins with "taken from NAME" was carried over from that machine by `xpusim new-soc`. When NAME is
fitted again, or when more published rows say how far such transfers are off, the copy is old. This makes each copy again,
with the data sheet values of the shipped file, and prints every number that differs. --write puts the new ones there.
A machine whose kernel times are all carried over must say so by "like", or runs on it state no error of the transfer.
Exit 1: a number differed and was not written, or "like" is missing.
"""
import json
import os
import re
import subprocess
import sys
import tempfile

FOLDER = os.path.join(os.path.dirname(os.path.abspath(__file__)), "soc")


def is_quantity(node):
    return isinstance(node, dict) and "value" in node and "unit" in node


def entry_name(node):
    return node.get("name") or "%s/%s" % (node.get("runtime"), node.get("weight_bits"))


def quantities(node, path=()):
    """Every quantity below a node, by the names on the way to it."""
    if is_quantity(node):
        yield path, node
    elif isinstance(node, dict):
        for key, child in node.items():
            yield from quantities(child, path + (key,))
    elif isinstance(node, list):
        for child in node:
            if isinstance(child, dict):
                yield from quantities(child, path + (entry_name(child),))


def origin(quantity):
    """The machine that a number was carried over from, or None."""
    found = re.match(r"taken from ([\w.-]+?)[;,]", quantity.get("source", ""))
    return found and found.group(1)


def copy_of(xpusim, soc, like):
    """The file that new-soc makes from `like` with the data sheet of `soc`."""
    how = [xpusim, "new-soc", soc["name"], "--like", like]
    how += ["--family", soc["family"]] if "family" in soc else []
    for option, part, number in (("--ddr-peak", "ddr", "peak"), ("--memory", "memory", "capacity")):
        if origin(soc[part][number]) is None:
            how += [option, "%g" % soc[part][number]["value"]]
    with open(os.path.join(FOLDER, like + ".json"), encoding="utf-8") as f:
        there = {d["name"] for d in json.load(f)["devices"]}
    for d in soc["devices"]:
        if d["name"] in there and origin(d["peak"]) is None:
            cores = ":%g" % d["cores"] if "cores" in d else ""
            how += ["--peak", "%s=%g%s" % (d["name"], d["peak"]["value"], cores)]
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "copy.json")
        subprocess.run(how + ["-o", path], check=True, stdout=subprocess.DEVNULL)
        with open(path, encoding="utf-8") as f:
            return dict(quantities(json.load(f)))


def parts(node, path=()):
    """Every object that holds quantities, by the names on the way to it."""
    if isinstance(node, dict) and not is_quantity(node):
        yield path, node
        for key, child in node.items():
            yield from parts(child, path + (key,))
    elif isinstance(node, list):
        for child in node:
            if isinstance(child, dict):
                yield from parts(child, path + (entry_name(child),))


def missing(soc, copies):
    """Numbers that a part lacks whose numbers all were carried over, and which the copy made again has."""
    found = []
    for path, part in parts(soc):
        origins = {origin(q) for q in part.values() if is_quantity(q)}
        if len(origins) != 1 or None in origins:
            continue
        for where, fresh in copies[origins.pop()].items():
            if where[:-1] == path and where[-1] not in part:
                found.append((where, fresh, part))
    return found


def main():
    xpusim, wanted = sys.argv[1], [a for a in sys.argv[2:] if a != "--write"]
    old = 0
    for name in wanted or sorted(f[:-5] for f in os.listdir(FOLDER) if f.endswith(".json")):
        path = os.path.join(FOLDER, name + ".json")
        with open(path, encoding="utf-8") as f:
            soc = json.load(f)
        numbers = [q for d in soc["devices"] for _, q in quantities(d["runtimes"])]
        if "like" not in soc and all(origin(q) for q in numbers):
            print("%s: made from %s, and has no \"like\"" % (name, origin(numbers[0])))
            old += 1
        copies, changed = {}, 0
        for where, number in quantities(soc):
            like = origin(number)
            if like is None:
                continue
            if like not in copies:
                copies[like] = copy_of(xpusim, soc, like)
            fresh = copies[like].get(where)
            if fresh is not None and fresh != number:
                changed += 1
                if "--write" not in sys.argv:
                    print("%s: %s is %g [%g, %g]; made from %s again it is %g [%g, %g]" % (
                        name, ".".join(where), number["value"], number["low"], number["high"], like,
                        fresh["value"], fresh["low"], fresh["high"]))
                number.clear()
                number.update(fresh)
        for where, fresh, part in missing(soc, copies):
            changed += 1
            if "--write" not in sys.argv:
                print("%s: %s is missing" % (name, ".".join(where)))
            part[where[-1]] = fresh
        if changed and "--write" in sys.argv:
            with open(path, "w", encoding="utf-8") as f:
                f.write(json.dumps(soc, indent=1) + "\n")
            print("%s: %d numbers" % (name, changed))
        else:
            old += changed
    return 1 if old else 0


sys.exit(main())
