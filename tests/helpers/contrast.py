"""Contrast by WCAG 2.1 and distances under colour blindness, measured on the palette and in Chromium.

    python3 tests/helpers/contrast.py                        # the palette and the scripts of plots
    python3 tests/helpers/contrast.py CHROMIUM FOLDER PAGE.. # also every text of these pages, light, dark and in print

Text needs 4.5:1, large text and marks of figures 3:1. Colour blindness is that of Machado, Oliveira and Fernandes (2009) at
severity 1, on linear RGB; a distance is Euclidean in OKLab (Ottosson 2020), where 0.02 is about what an eye can tell apart.
"""
import itertools
import math
import re
import sys
from pathlib import Path

TOP = Path(__file__).resolve().parent.parent.parent
sys.path.insert(0, str(TOP / "tests/helpers"))
TEXT, MARK, APART = 4.5, 3.0, 0.05
BLIND = {
    "protanopia": ((0.152286, 1.052583, -0.204868), (0.114503, 0.786281, 0.099216), (-0.003882, -0.048116, 1.051998)),
    "deuteranopia": ((0.367322, 0.860646, -0.227968), (0.280085, 0.672501, 0.047413), (-0.011820, 0.042940, 0.968881)),
    "tritanopia": ((1.255528, -0.076749, -0.178779), (-0.078411, 0.930809, 0.147602), (0.004733, 0.691367, 0.303900)),
}
bad = 0


def check(what, ok, seen=""):
    global bad
    if not ok:
        bad = 1
        print(f"FAILED: {what}: {seen}")


def rgb(text):
    """Of #rgb or #rrggbb: three numbers from 0 to 255."""
    text = text.lstrip("#")
    text = "".join(2 * c for c in text) if len(text) == 3 else text
    return tuple(int(text[i:i + 2], 16) for i in (0, 2, 4))


def linear(v):
    v /= 255
    return v / 12.92 if v <= 0.04045 else ((v + 0.055) / 1.055) ** 2.4


def gamma(v):
    v = min(1, max(0, v))
    return 255 * (12.92 * v if v <= 0.0031308 else 1.055 * v ** (1 / 2.4) - 0.055)


def times(matrix, v):
    return tuple(sum(m * x for m, x in zip(row, v)) for row in matrix)


def contrast(a, b):
    light = sorted(sum(w * linear(v) for w, v in zip((0.2126, 0.7152, 0.0722), c)) for c in (a, b))
    return (light[1] + 0.05) / (light[0] + 0.05)


def turned_over(c):
    """What the page's filter for the dark makes of a colour: invert(.91) hue-rotate(180deg), as CSS defines them."""
    v = [0.91 + x / 255 * (1 - 2 * 0.91) for x in c]
    r, g, b = 0.213, 0.715, 0.072
    matrix = ((2 * r - 1, 2 * g, 2 * b), (2 * r, 2 * g - 1, 2 * b), (2 * r, 2 * g, 2 * b - 1))
    return tuple(255 * min(1, max(0, x)) for x in times(matrix, v))


def oklab(c):
    lms = times(((0.4122214708, 0.5363325363, 0.0514459929), (0.2119034982, 0.6806995451, 0.1073969566), (0.0883024619, 0.2817188376, 0.6299787005)), [linear(v) for v in c])
    return times(((0.2104542553, 0.7936177850, -0.0040720468), (1.9779984951, -2.4285922050, 0.4505937099), (0.0259040371, 0.7827717662, -0.8086757660)), [max(0, v) ** (1 / 3) for v in lms])


def seen_with(c, matrix):
    return tuple(gamma(v) for v in times(matrix, [linear(v) for v in c])) if matrix else c


def nearest(colours):
    """Per kind of sight the least distance of two colours."""
    return {kind: min((math.dist(oklab(seen_with(a, m)), oklab(seen_with(b, m))), i, j) for (i, a), (j, b) in itertools.combinations(enumerate(colours), 2))
            for kind, m in {"usual sight": None, **BLIND}.items()}


def variables(name):
    """Custom properties of both style sheets, light or dark."""
    out = {}
    for sheet in ("plots/page.css", "plots/live.css"):
        roots = re.findall(r"(@media screen and \(prefers-color-scheme: dark\) \{\s*)?:root \{([^}]*)\}", (TOP / sheet).read_text())
        for media, body in roots:
            if name == "dark" or not media:
                out.update(re.findall(r"--([a-z]+): (#[0-9a-f]+)", body))
    return {k: rgb(v) for k, v in out.items()}


def palette():
    style = (TOP / "plots/style.gp").read_text()
    base = [rgb(x) for x in re.findall(r"0x([0-9A-F]{6})", re.search(r"array base\[8\] = \[(.*)\]", style).group(1))]
    script = [rgb(x) for x in re.findall(r"'(#[0-9a-f]{6})'", re.search(r"var palette = \[(.*)\]", (TOP / "plots/live.js").read_text()).group(1))]
    check("the page's palette is that of the figures", base == script, (base, script))
    grounds = {scheme: variables(scheme)["ground"] for scheme in ("light", "dark")}
    for c in base:
        check("palette on white", contrast(c, grounds["light"]) >= MARK, (c, contrast(c, grounds["light"])))
        check("palette in the dark", contrast(turned_over(c), grounds["dark"]) >= MARK, (c, contrast(turned_over(c), grounds["dark"])))
    for scheme, colours in (("light", base), ("dark", [turned_over(c) for c in base])):
        for kind, (distance, i, j) in nearest(colours).items():
            print(f"note: palette, {scheme}, {kind}: nearest are {i} and {j}, {distance:.3f} apart")
            check(f"palette under {kind}, {scheme}", distance >= APART, (i, j, distance))
    for scheme in ("light", "dark"):
        v = variables(scheme)
        for name in ("reactive", "proactive", "both", "grey"):
            check(f"--{name}, {scheme}", contrast(v[name], v["ground"]) >= MARK, contrast(v[name], v["ground"]))
        for kind, (distance, i, j) in nearest([v[k] for k in ("reactive", "proactive", "both")]).items():
            check(f"classes under {kind}, {scheme}", distance >= APART, (i, j, distance))


# Lines of the grid, frames and fills of whole panels carry no information of their own.
PLAIN = {"#dddddd", "#ffffff", "#f7fbff", "#9ecae1"}


def scripts():
    for path in sorted((TOP / "plots").glob("*.gp")):
        for number, line in enumerate(path.read_text().splitlines(), 1):
            for colour in re.findall(r"'(#[0-9A-Fa-f]{6})'", line):
                if not line.startswith("#") and colour.lower() not in PLAIN:
                    ratio = contrast(rgb(colour), (255, 255, 255))
                    check(f"{path.name}:{number}: {colour} on white", ratio >= MARK, f"{ratio:.2f}")


# Every text that can be seen, with its colour and the colour behind it, as composed from its ancestors.
TEXTS = r"""(() => {
  const parse = s => { const m = s.match(/[\d.]+/g).map(Number); return m.length < 4 ? [...m, 1] : m; };
  const over = (a, b) => [0, 1, 2].map(i => a[i] * a[3] + b[i] * (1 - a[3])).concat(1);
  const out = {}, walker = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
  for (let n = walker.nextNode(); n; n = walker.nextNode()) {
    const e = n.parentElement, style = getComputedStyle(e), box = e.getBoundingClientRect();
    if (!n.data.trim() || ['SCRIPT', 'STYLE', 'OPTION', 'NOSCRIPT'].includes(e.tagName) || style.visibility === 'hidden' || box.width === 0) continue;
    const layers = [];
    for (let p = e; p; p = p.parentElement) { layers.push(parse(getComputedStyle(p).backgroundColor)); }
    const behind = layers.reverse().reduce((b, a) => over(a, b), GROUND);
    const size = parseFloat(style.fontSize), large = size >= 24 || (size >= 18.66 && Number(style.fontWeight) >= 700);
    const colour = over(parse(style.color), behind);
    out[[colour.slice(0, 3), behind.slice(0, 3), large].join('|')] = n.data.trim().slice(0, 40);
  }
  return out;
})()"""


def pages(program, folder, names):
    from browser import Browser
    with Browser(program, folder) as b:
        for name in names:
            b.media()
            b.open(name)
            b.js("new Promise(f => setTimeout(f, 500))")
            for scheme, media in (("light", ""), ("dark", ""), ("light", "print")):
                b.media(scheme, media)
                b.js("new Promise(f => requestAnimationFrame(() => requestAnimationFrame(f)))")
                ground = [*variables(scheme)["ground"], 1]
                texts, least = b.js(TEXTS.replace("GROUND", str(ground))), (99.0, "")
                for key, text in texts.items():
                    colour, behind, large = key.split("|")
                    ratio = contrast(*(tuple(float(x) for x in c.split(",")) for c in (colour, behind)))
                    least = min(least, (ratio, text))
                    check(f"{Path(name.split('#')[0]).name}, {media or scheme}: \"{text}\"", ratio >= (MARK if large == "true" else TEXT), f"{ratio:.2f}: {colour} on {behind}")
                print(f"note: {Path(name.split('#')[0]).name}, {media or scheme}: {len(texts)} pairs of colours of text, least contrast {least[0]:.2f} (\"{least[1]}\")")


palette()
scripts()
if len(sys.argv) > 3:
    pages(sys.argv[1], sys.argv[2], sys.argv[3:])
sys.exit(bad)
