"""texts_inside.py FIGURE.svg...: no text leaves its figure, and no two on one line overlap.

gnuplot does not measure texts, so a letter counts as 6.5 pixels, which is what one of 13 pixels takes in the mean."""
import re
import sys

LETTER = 6.5
bad = 0
for path in sys.argv[1:]:
    svg = open(path).read()
    width = float(re.search(r"viewBox='0 0 (\d+)", svg)[1])
    lines = {}
    for at, y, rest, text in re.findall(r"<text x='([\d.]+)' y='([\d.]+)'([^>]*)>([^<]*)", svg):
        if "rotate" in rest or not text.strip():
            continue
        anchor = re.search(r"text-anchor='(\w+)'", rest)
        size = LETTER * len(text)
        start = float(at) - size * {"end": 1.0, "middle": 0.5}.get(anchor and anchor[1], 0.0)
        if start < 0 or start + size > width:
            bad = print(f"{path}: '{text}' leaves the figure: {start} to {start + size} of {width}") or 1
        lines.setdefault(y, set()).add((start, start + size, text))
    for line in map(sorted, lines.values()):
        for before, after in zip(line, line[1:]):
            if after[0] < before[1] and after[2] != before[2]:
                bad = print(f"{path}: '{before[2]}' and '{after[2]}' overlap") or 1
sys.exit(bad)
