"""Faults drawn by operators from C sources that clang-format laid out (blind.py puts them in).

An operator takes a source and a line, and returns every fault that it can make there: the first and the
last line that change, and their new texts. A fault keeps the number of lines, as assertions print theirs.

    draw.py OPERATOR FILE   prints every fault that the operator makes: `LINE: new text`
"""
import random
import re
import sys

KEYWORDS = set("if for while switch return sizeof else do case break continue goto default const static "
               "struct union enum unsigned int char bool double float void long short true false NULL "
               "offsetof inline extern size_t".split())
SYMMETRIC = set("calloc xcalloc fmin fmax".split())  # whatever the order of what they are given
WORD = re.compile(r"[A-Za-z_]\w*")
PRINTS = re.compile(r"printf|\btext_|xformat|_add\(|_say\(|_print\w*\(")


def masked(text):
    """The text with comments, and what stands between quotes, as blanks: each character keeps its place."""
    def blank(m):
        s = m.group()
        hidden = re.sub(r"[^\n]", " ", s)
        return hidden if s[0] == "/" else s[0] + hidden[1:-1] + s[-1]
    return re.sub(r"/\*.*?\*/|//[^\n]*|\"(?:\\.|[^\"\\\n])*\"|'(?:\\.|[^'\\\n])*'", blank, text, flags=re.S)


class Source:
    """Lines as they are and masked, and the region of each: first line, last line, "code" or "table"."""

    def __init__(self, text):
        self.lines = text.split("\n")
        self.code = masked(text).split("\n")
        self.region = {}
        start, kind = None, None
        for i, line in enumerate(self.code):
            if start is None and (line.startswith("{") or re.match(r"[a-z].*= \{$", line)):
                start, kind = i, "code" if line.startswith("{") else "table"
            elif start is not None and line.startswith("}"):
                self.region.update((k, (start, i, kind)) for k in range(start + 1, i))
                start = None

    def is_code(self, i):
        return i in self.region and self.region[i][2] == "code"

    def until(self, i, end):
        """The last line of what begins in line i and ends with one of the characters, all brackets closed."""
        depth = 0
        for k in range(i, self.region[i][1]):
            depth += sum(self.code[k].count(c) for c in "({[") - sum(self.code[k].count(c) for c in ")}]")
            if depth <= 0:
                return k if depth == 0 and self.code[k].rstrip()[-1:] in end else None
        return None

    def begins(self, i):
        """Whether a statement begins in line i."""
        k = i - 1
        while k > 0 and not self.code[k].strip():
            k -= 1
        return bool(re.search(r"([;{}:)]|\belse|\bdo)\s*$", self.code[k]))

    def put(self, i, start, end, new):
        return i, i, [self.lines[i][:start] + new + self.lines[i][end:]]

    def drop(self, first, last, new):
        indent = re.match(r"\s*", self.lines[first]).group()
        return first, last, [(indent + new).rstrip()] + [""] * (last - first)

    def replaced(self, i, pattern, new, among=None):
        """One fault for each match in the masked line; `new` is a text or a function of the match."""
        found = []
        for m in re.finditer(pattern, among if among is not None else self.code[i]):
            text = new(m) if callable(new) else new
            if text is not None and text != m.group():
                found.append(self.put(i, m.start(), m.end(), text))
        return found


OPERATORS = {}


def operator(why):
    def keep(f):
        OPERATORS[f.__name__] = (f, why)
        return f
    return keep


def closing(code, start):
    """The bracket that closes the one at `start`, and the commas of its level; (None, []) on a later line."""
    depth, commas = 0, []
    for k in range(start, len(code)):
        if code[k] in "([{":
            depth += 1
        elif code[k] in ")]}":
            depth -= 1
            if depth == 0:
                return k, commas
        elif code[k] == "," and depth == 1:
            commas.append(k)
    return None, []


@operator("wrong sign")
def sign(s, i):
    if not s.is_code(i):
        return []
    other = {"+": "-", "-": "+"}
    return s.replaced(i, r"(?<= )[-+](?==? )", lambda m: other[m.group()])


@operator("swapped arguments")
def arguments(s, i):
    found, code = [], s.code[i]
    if not s.is_code(i):
        return found
    for m in re.finditer(r"\b([A-Za-z_]\w*)\(", code):
        end, commas = closing(code, m.end() - 1)
        if m.group(1) in KEYWORDS or m.group(1) in SYMMETRIC or end is None:
            continue
        if m.group(1) == "strcmp" and re.match(r" [!=]= 0", code[end + 1:]):  # the same either way
            continue
        edges = [m.end() - 1] + commas + [end]
        parts = [(edges[k] + 1, edges[k + 1]) for k in range(len(edges) - 1)]
        for (a, b), (c, d) in zip(parts, parts[1:]):
            x, y = s.lines[i][a:b].strip(), s.lines[i][c:d].strip()
            if x != y and '"' not in x + y:
                lead = s.lines[i][a:b][:len(s.lines[i][a:b]) - len(s.lines[i][a:b].lstrip())]
                found.append(s.put(i, a, d, "%s%s, %s" % (lead, y, x)))
    return found


def akin(a, b):
    """Names that are taken for one another: single letters, or the same last or first part."""
    if len(a) == 1 or len(b) == 1:
        return len(a) == len(b)
    x, y = a.split("_"), b.split("_")
    return len(x) + len(y) > 2 and (x[-1] == y[-1] or x[0] == y[0])


@operator("neighbour's name")
def neighbour(s, i):
    if not s.is_code(i):
        return []
    names = {True: set(), False: set()}  # members, variables
    pattern = re.compile(r"(->|\.)?\b([a-z]\w*)\b(?!\()")
    first, last, _ = s.region[i]
    for line in s.code[first:last]:
        for m in pattern.finditer(line):
            if m.group(2) not in KEYWORDS and not m.group(2).endswith("_t"):
                names[bool(m.group(1))].add(m.group(2))
    found = []
    for m in pattern.finditer(s.code[i]):
        if m.group(2) in names[bool(m.group(1))]:
            found += [s.put(i, m.start(2), m.end(2), n)
                      for n in sorted(names[bool(m.group(1))]) if n != m.group(2) and akin(n, m.group(2))]
    return found


@operator("off by one")
def one(s, i):
    if not s.is_code(i):
        return []
    other = {"<": "<=", "<=": "<", ">": ">=", ">=": ">"}
    # The lesser or greater of two is the same at equality.
    same = [m.span() for m in re.finditer(r"([\w.>\[\]-]+) [<>]=? ([\w.>\[\]-]+) \? (?:\1 : \2|\2 : \1)(?![\w.\[>-])", s.code[i])]
    found = s.replaced(i, r"(?<= )[<>]=?(?= )",
                       lambda m: None if any(a <= m.start() < b for a, b in same) else other[m.group()])
    found += s.replaced(i, r" [-+] 1[uUlL]*(?![\w.])", "")
    found += s.replaced(i, r"(?<= = )\d+(?=;)", lambda m: str(int(m.group()) + 1))
    # An array that is declared one longer behaves as it did.
    if not re.match(r"\s+(static |const |struct |unsigned )*\w+ \**\w+\[\w+\]( = \{0[.0]*\})?;", s.code[i]):
        found += s.replaced(i, r"(?<=\[)\w+(?=\])", lambda m: m.group() + " + 1")
    return found


ASSIGNED = r"\s+[*a-z][\w>.\[\]() +-]*? ([-+*/|&]?)= "
EMPTY = r"(0|0\.0|false|NULL|-1|\{0\}|\([a-z ]\w*[\w ]*\)\{0\})"


@operator("stale value")
def stale(s, i):
    m = re.match(ASSIGNED, s.code[i])
    words = WORD.findall(s.code[i].split("=")[0])
    if not s.is_code(i) or not m or not s.begins(i) or re.match(r"\s+(\w+ )+\*?\w+(\[.*\])? = ", s.code[i]) or \
            (words and words[0] in KEYWORDS) or re.search(r"= %s;" % EMPTY, s.code[i]):
        return []
    last = s.until(i, ";")
    return [s.drop(i, last, "{}")] if last is not None else []


@operator("missing reset")
def reset(s, i):
    if not s.is_code(i) or not s.begins(i):
        return []
    if re.match(r"\s+[*a-z][\w>.\[\]-]* = %s;$" % EMPTY, s.code[i].rstrip()) or \
            re.match(r"\s+(\(void\))?memset\(.*\);$", s.code[i].rstrip()):
        return [s.drop(i, i, "{}")]
    return []


UNITS = {"ms": "s", "s": "ms", "us": "ms", "ns": "us", "GB": "MB", "MB": "GB", "GB/s": "GB", "J": "mJ", "mJ": "J"}


@operator("wrong unit in a print")
def unit(s, i):
    if not s.is_code(i):
        return []
    found = []
    k = i  # the call that prints may have begun on an earlier line
    while k > s.region[i][0] and not s.begins(k):
        k -= 1
    if not PRINTS.search(" ".join(s.code[k:i + 1])):
        return []
    for m in re.finditer(r"\"[^\"]*\"", s.code[i]):
        text = s.lines[i][m.start():m.end()]
        for w in re.finditer(r"(?<=[0-9a-z%] )(GB/s|ms|us|ns|GB|MB|mJ|J|s)(?![\w/])", text):
            found.append(s.put(i, m.start() + w.start(), m.start() + w.end(), UNITS[w.group()]))
    found += s.replaced(i, r" [*/] (1e-?[369]|1000(\.0)?|100(\.0)?)(?![\w.])", "")
    found += s.replaced(i, r"units_(s|ms|us)_from_ns(?=\()",
                        lambda m: "units_%s_from_ns" % {"s": "ms", "ms": "us", "us": "ms"}[m.group(1)])
    return found


@operator("dropped row of a table")
def row(s, i):
    if i not in s.region or s.region[i][2] != "table" or not re.match(r"    (\{|[A-Z][A-Z_0-9]+\()", s.code[i]) or \
            re.match(r"    \{(0|NULL|\{?0\}?)?\},?$", s.code[i]):
        return []
    last = s.until(i, ",")
    return [s.drop(i, last, "")] if last is not None else []


@operator("negated condition")
def condition(s, i):
    if not s.is_code(i):
        return []
    found, code = [], s.code[i]
    for m in re.finditer(r"\b(?:if|while) \(", code):
        end, _ = closing(code, m.end() - 1)
        if end is not None:
            found.append(s.put(i, m.end(), end, "!(%s)" % s.lines[i][m.end():end]))
    m = re.search(r"(?:return|[^=!<>]=) ([^?;,]+?) \? ", code)
    if m:
        found.append(s.put(i, m.start(1), m.end(1), "!(%s)" % s.lines[i][m.start(1):m.end(1)]))
    return found


@operator("and for or")
def logic(s, i):
    return s.replaced(i, r"&&|\|\|", lambda m: {"&&": "||", "||": "&&"}[m.group()]) if s.is_code(i) else []


@operator("least for most")
def minmax(s, i):
    other = {"min": "max", "max": "min", "MIN": "MAX", "MAX": "MIN"}
    return s.replaced(i, r"(?<![A-Za-z])f?(min|max|MIN|MAX)(?![A-Za-z])",
                      lambda m: m.group().replace(m.group(1), other[m.group(1)])) if s.is_code(i) else []


@operator("other comparison")
def comparison(s, i):
    other = {"<": ">", "<=": ">=", ">": "<", ">=": "<=", "==": "!=", "!=": "=="}
    return s.replaced(i, r"(?<= )([<>]=?|[=!]=)(?= )", lambda m: other[m.group()]) if s.is_code(i) else []


@operator("dropped call")
def call(s, i):
    m = re.match(r"\s+(?:\(void\))?([a-z]\w*)\(", s.code[i])
    # What frees is seen by sanitizers alone, and `reset` has memset.
    if not s.is_code(i) or not m or not s.begins(i) or m.group(1) in KEYWORDS | {"free", "memset"} or m.group(1).endswith("_fini"):
        return []
    last = s.until(i, ";")
    return [s.drop(i, last, "{}")] if last is not None else []


FACTORS = {"1e3": "1e6", "1e6": "1e9", "1e9": "1e6", "1e-3": "1e-6", "1e-6": "1e-9", "1e-9": "1e-6",
           "NS_PER_S": "NS_PER_MS", "NS_PER_MS": "NS_PER_US", "NS_PER_US": "NS_PER_MS"}


@operator("wrong factor")
def factor(s, i):
    return s.replaced(i, r"(?<![\w.])(1e-?[369]|NS_PER_M?S|NS_PER_US)(?![\w.])", lambda m: FACTORS[m.group()]) if s.is_code(i) else []


def faults(source, i):
    """Operator -> its faults in line i, where it has any."""
    return {name: made for name, (f, _) in OPERATORS.items() for made in [f(source, i)] if made}


def draw(texts, places, seed):
    """Yields records, one for each drawn line that an operator fits. `texts` is path -> source text, `places`
    the (path, line from 1) to draw among. The same arguments give the same records."""
    places = sorted(places)
    random.Random(str(seed)).shuffle(places)
    sources = {}
    for path, line in places:
        source = sources.setdefault(path, None) or Source(texts[path])
        sources[path] = source
        if not source.code[line - 1].strip(" {};"):
            continue
        chance = random.Random("%s %s %d" % (seed, path, line))
        made = faults(source, line - 1)
        if made:
            name = chance.choice(sorted(made))
            first, last, after = chance.choice(made[name])
            yield {"file": path, "at": first + 1, "operator": name, "why": OPERATORS[name][1],
                   "before": source.lines[first:last + 1], "after": after}


def changed_lines(diff):
    """The (path, line) of the new side that a `git diff -U0` touched."""
    found, path = [], None
    for line in diff.split("\n"):
        if line.startswith("+++ "):
            path = line[6:] if line.startswith("+++ b/") else None
        m = re.match(r"@@ \S+ \+(\d+)(?:,(\d+))? @@", line)
        if m and path:
            first, count = int(m.group(1)), int(m.group(2) or 1)
            found += [(path, n) for n in range(first, first + count)]
    return found


if __name__ == "__main__":
    with open(sys.argv[2]) as listed:
        whole = Source(listed.read())
    for number in range(len(whole.lines)):
        for start, end, new in OPERATORS[sys.argv[1]][0](whole, number):
            print("%s: %s" % (start + 1 if start == end else "%d-%d" % (start + 1, end + 1), new[0].strip()))
