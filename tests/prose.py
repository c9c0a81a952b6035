#!/usr/bin/env python3
"""Finds breaches of the style page (CONTRIBUTING.md, "How we write").

  prose.py                 fails where a file has one
  prose.py --list FILE...  prints every breach of these files, with its line
  prose.py --stats         sentence statistics by kind of text

Nothing outside Python is needed.
"""
import re
import subprocess
import sys

# Words of an earlier private dialect, and the field's word for each.
BANNED = {
    r"beside": "next to, co-running",
    r"solo": "isolated",
    r"anew": "again",
    r"alike": "equal, equally",
    r"likewise": "(say it again)",
    r"whatever": "regardless of",
    r"told|tells": "reported, prints, says",
    r"hears?|heard": "is notified, receives",
    r"stands?|stood": "is",
    r"goes on|go on|went on": "continues",
    r"held to": "compared with",
    r"in turns": "round-robin",
    r"of means": "of the mean",
    r"the same of": "(repeat the noun)",
    r"such a one|those who": "(name them)",
    r"gets? for nothing": "included",
}
OPENINGS = r"(?:Of|What|Whose|Whatever|The same|Likewise|Who)\b"
WORD_LIMIT = {"prose": 35, "header": 35, "source": 35, "test": 35, "script": 35, "text": 35}
MEAN_LIMIT = {"prose": 20, "header": 16, "test": 20, "script": 20}
TESTS = ("helpers", "oracle", "conformance", "unit", "golden", "originals")  # folders of tests/ under the page
SCRIPTS = ("golden", "originals")  # and those whose scripts are


def kind_of(path):
    """A test's comments are sentences; its literals are data, and what it expects."""
    if path.endswith(".md"):
        return "prose"
    if path.endswith(".h"):
        return "header"
    if path.endswith((".sh", ".py")):
        return "script"
    return "test" if re.search(r"(?:^|/)tests/(?!helpers/)", path) else "source"


def md_blocks(text):
    """Yields (line, paragraph) of Markdown without code, tables, headings and comments."""
    para, start, fenced = [], 0, False
    for number, line in enumerate(text.split("\n") + [""], 1):
        if line.lstrip().startswith("```"):
            fenced = not fenced
            line = ""
        # Rows of a table are no sentences, also within a list.
        item = re.match(r"\s*(?:[-*]|\d+\.) (.*)", line)
        skip = fenced or line.startswith(("    ", "#", "|", "  |", "<", "![")) or not line.strip()
        if (skip and not (item and not fenced)) or item:
            if para:
                yield start, " ".join(para)
            para = []
            if item and not fenced:
                para, start = [item.group(1)], number
            continue
        if not para:
            start = number
        para.append(line.strip())


def comment_blocks(text):
    """Yields (line, paragraph) of block comments; rows of lists (word, gap, text) are left out."""
    for m in re.finditer(r'"(?:\\.|[^"\\\n])*"|/\*(.*?)\*/', text, re.S):
        if m.group(1) is None:
            continue
        line = text.count("\n", 0, m.start()) + 1
        para, start = [], line
        for offset, raw in enumerate(m.group(1).split("\n")):
            body = re.sub(r"^\s*\*(?= |$)", "", raw)
            if not body.strip() or re.match(r"\s{3,}\S", body) or re.match(r"\s*-+ ", body):
                if para:
                    yield start, " ".join(para)
                para = []
                continue
            if not para:
                start = line + offset
            para.append(body.strip())
        if para:
            yield start, " ".join(para)


def script_blocks(text):
    """Yields (line, paragraph) of runs of comment lines and of docstrings; directives and rows of lists are left out."""
    def bare(m):  # a docstring as comment lines
        return "\n".join(f"# {line.strip()}" if line.strip() and not line.startswith(m.group(1) + "  ") else ""
                         for line in (m.group(1) + m.group(2)).split("\n"))
    lines = re.sub(r'^([ ]*)r?"""(.*?)"""', bare, text, flags=re.S | re.M).split("\n")
    para, start = [], 0
    for number, line in enumerate(lines + [""], 1):
        m = re.match(r"\s*# (?!shellcheck|include|xpusim-)(\S.*)", line)
        if m and not re.search(r"\S {3,}\S|^-+ ", m.group(1)):
            start = start if para else number
            para.append(m.group(1).strip())
        elif para:
            yield start, " ".join(para)
            para = []


def literal_blocks(text):
    """Yields (line, text) of adjacent string literals that hold a sentence: help and messages, but no SQL."""
    bare = re.sub(r"/\*.*?\*/", lambda m: "\n" * m.group(0).count("\n"), text, flags=re.S)
    for m in re.finditer(r'(?:"(?:\\.|[^"\\\n])*"\s*)+', bare):
        joined = "".join(re.findall(r'"((?:\\.|[^"\\\n])*)"', m.group(0)))
        for part in re.split(r"\\n\\n|\\n(?=  )", joined):  # paragraphs, and rows of a list
            part = re.sub(r"\\n", " ", part)
            if len(part.split()) >= 5 and not re.match(r"(SELECT|INSERT|CREATE|UPDATE|ATTACH|WITH) ", part):
                yield bare.count("\n", 0, m.start()) + 1, part


def sentences(paragraph):
    p = re.sub(r"`[^`]*`", "CODE", paragraph)
    p = re.sub(r"!?\[([^\]]*)\]\([^)]*\)", r"\1", p)
    p = re.sub(r"\b(e\.g|i\.e|vs|Fig|Eq|No|cf|etc|resp|approx)\.", r"\1", p)
    return [s.strip() for s in re.split(r"(?<=[.!?])(?:[)*\"]*)\s+(?=[A-Z(*`\"0-9])", p) if s.strip()]


def broken_lists(text):
    """Yields (line, what) of lists that a formatter has run together (tests/golden/prose.sh shows each):
    a row whose text continues in the first column; a gap between columns in the middle of a sentence;
    a line that ends early, and the next begins with a comparison; a trailing comment cut in two."""
    row = re.compile(r"^ \*   ?\S+(?: \S+)?\s{2,}\S")
    lines = text.split("\n")
    for i, line in enumerate(lines):
        after = lines[i + 1] if i + 1 < len(lines) else ""
        if row.match(line) and re.match(r"^ \* ?[a-z]", after) and not row.match(after):
            yield i + 2, "a list that runs into the first column"
        elif re.match(r"^ *\* (?:\S+ ){3,}\S+ {3,}\S", line):
            yield i + 1, "columns in the middle of a sentence: a list that was reflowed"
        elif re.match(r"^(?: \*|/\*) \S.{0,60}\w$", line) and re.match(r"^ *\* [<>]=? ", after):
            yield i + 2, "a sentence broken before a comparison"
        elif re.search(r"\S +/\* [^*]*[^.;*] \*/$", line) and not line.lstrip().startswith("/*"):
            end = re.match(r"^( {12,})/\* [a-z].* \*/$", after)
            if end and line.find("/*") == len(end.group(1)):
                yield i + 2, "a trailing comment cut in two"


def broken_tables(text):
    """Yields (line, what) of tables of a page that begin or end in the middle of a sentence."""
    fenced, before = False, ""
    for i, line in enumerate(text.split("\n"), 1):
        fenced ^= line.startswith("```")
        if line.startswith("|") and not fenced:
            if not line.rstrip().endswith("|"):
                yield i, "a row of a table that runs into a sentence"
            elif before and not before.startswith("|"):
                yield i, "a table that begins in a paragraph"
        before = line


def breaches(path):
    """Returns [(line, what)] and the word counts of the file's sentences."""
    text = open(path, encoding="utf-8").read()
    kind = kind_of(path)
    found, lengths, marks, passive = [], [], 0, 0
    read = {"prose": md_blocks, "script": script_blocks}.get(kind, comment_blocks)
    blocks = [(read(text), kind)]
    if kind == "source":
        blocks.append((literal_blocks(text), "text"))
    for source, what in blocks:
        for line, paragraph in source:
            for s in sentences(paragraph):
                words = len(s.split())
                if what != "text":
                    lengths.append(words)
                    marks += len(re.findall(r"[(;:](?:\s|\w|$)", s))
                    passive += bool(re.search(r"\b(?:is|are|was|were|been|being|be) \w+(?:ed|wn|ne|ut|ld|de)\b", s))
                if words > WORD_LIMIT[what]:
                    found.append((line, f"a sentence of {words} words"))
                for word, better in BANNED.items():
                    for m in re.finditer(rf"(?<![\w.-])(?:{word})(?![\w-])", s):
                        found.append((line, f'"{m.group(0)}": {better}'))
                if what in ("header", "source", "test", "script") and re.match(OPENINGS, s) and not s.endswith("?"):
                    found.append((line, f'a sentence that opens with "{s.split()[0]}"'))
                if what == "prose" and s.count("(") > 2:
                    found.append((line, "three parentheses in a sentence"))
    found += broken_tables(text) if kind == "prose" else broken_lists(text) if kind != "script" else []
    if kind in MEAN_LIMIT and len(lengths) >= 5:
        mean = sum(lengths) / len(lengths)
        if mean > MEAN_LIMIT[kind]:
            found.append((0, f"{mean:.1f} words a sentence in the mean, over {MEAN_LIMIT[kind]}"))
        if kind == "prose" and marks > len(lengths):
            found.append((0, f"{marks / len(lengths):.1f} parentheses, colons and semicolons a sentence, over 1"))
        if kind == "prose" and passive > 0.25 * len(lengths):
            found.append((0, f"{100 * passive / len(lengths):.0f} % of sentences passive, over 25"))
    return sorted(found), lengths


def files():
    names = subprocess.run(["git", "ls-files", "--cached", "--others", "--exclude-standard", "*.md", "*.h", "*.c",
                            *(f"tests/{folder}/*.{ending}" for folder in SCRIPTS for ending in ("sh", "py"))],
                           capture_output=True, text=True, check=True).stdout.split()
    names = [n for n in names if not n.startswith("tests/") or n.split("/")[1] in TESTS]
    return sorted(set(n for n in names if n != "CHANGELOG.md"))


def readable(paths):
    for path in paths:
        try:
            yield path, breaches(path)
        except FileNotFoundError:
            continue


def check():
    bad = [path for path, (found, _) in readable(files()) if found]
    for path in bad:
        print(f"lint: {path} breaches the style page (tests/prose.py --list {path})")
    return 1 if bad else 0


def stats():
    groups = {}
    for path, (found, lengths) in readable(files()):
        kind = kind_of(path)
        name = "README.md" if path == "README.md" else "docs" if path.startswith("docs/") and kind == "prose" else \
            {"prose": "other pages", "header": "header comments", "source": "source comments",
             "test": "test comments", "script": "comments of scripts"}[kind]
        g = groups.setdefault(name, [[], 0])
        g[0] += lengths
        g[1] += len(found)
    print(f"{'':18s} sentences  mean  P90  max  over 30   breaches")
    for name, (lengths, n) in sorted(groups.items()):
        s = sorted(lengths)
        print(f"{name:18s} {len(s):9d} {sum(s) / len(s):5.1f} {s[int(0.9 * (len(s) - 1))]:4d} {s[-1]:4d} "
              f"{100 * sum(x > 30 for x in s) / len(s):7.1f} % {n:9d}")
    return 0


def main(args):
    if args[:1] == ["--list"]:
        for path in args[1:]:
            for line, what in breaches(path)[0]:
                print(f"{path}:{line}: {what}")
        return 0
    if args == ["--stats"]:
        return stats()
    return check()


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
