#!/usr/bin/env python3
"""Verdicts from numbers: what the rules of claims.h make of the numbers in `xpusim claims --json`.

    verdicts.py RESULT.json...     prints each verdict that its own numbers contradict; exit 1 when there is one

It shares nothing with the program: the numbers of a check are all it reads, and the words are what it tests.
"""
import json
import sys

VERDICTS = ["reproduced", "calibrated", "compatible, not decided", "direction", "not reproduced", "not modellable"]


def number(check, low, high):
    """A published number or range, against the range of single traces and the interval of the mean."""
    middle = (low + high) / 2
    neutral = check["neutral"]
    beyond = True
    if neutral is not None:
        beyond = check["low"] > neutral if middle > neutral else check["high"] < neutral
    shown = check["least"] <= high and check["most"] >= low
    if not (beyond and shown):
        return "direction" if beyond and neutral is not None else "not reproduced"
    effect = max(abs(middle - (neutral or 0)), high - low)
    has_spread = check["low"] != check["high"]
    wide = has_spread and check["most"] - check["least"] > effect
    return "compatible, not decided" if wide else "reproduced"


def order(check, word, bound):
    def kept(x):
        return x > bound if word == "above" else x < bound
    if check["every_trace"]:
        return "reproduced" if kept(check["worst"]) else "not reproduced"
    if kept(check["low"]) and kept(check["high"]):
        return "reproduced"
    return "direction" if kept(check["simulated"]) else "not reproduced"


def of_check(check, set_by):
    published = check["published"]
    if check["simulated"] is None:
        return "not reproduced"
    if not isinstance(published, str):
        word = number(check, published, published)
    elif published.split()[0] in ("above", "below"):
        word = order(check, published.split()[0], float(published.split()[1]))
    else:
        low, high = published.split(" to ")
        word = number(check, float(low), float(high))
    return "calibrated" if set_by and word == "reproduced" else word


def of_claim(row):
    """A claim is as good as its worst check that counts; without checks it is not modellable."""
    counted = [of_check(c, row.get("set_by")) for c in row["checks"] if not c["informative"]]
    return max(counted, key=VERDICTS.index) if counted else "not modellable"


def contradictions(results):
    """(claim, check or None, word that was printed, word that its numbers give) for each disagreement."""
    for row in results:
        for c in row["checks"]:
            word = of_check(c, row.get("set_by"))
            if word != c["verdict"]:
                yield row["id"], c["name"], c["verdict"], word
        word = of_claim(row)
        if word != row["verdict"]:
            yield row["id"], None, row["verdict"], word


def main():
    bad = 0
    for path in sys.argv[1:]:
        with open(path, encoding="utf-8") as f:
            results = json.load(f)
        for claim, check, printed, word in contradictions(results):
            print(f"{path}: {claim}{': ' + check if check else ''}: {printed}, but its numbers say {word}")
            bad += 1
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
