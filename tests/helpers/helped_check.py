#!/usr/bin/env python3
"""The help of every command next to its man page, the completions of three shells, its own usage lines and the pages of docs: the same
options, values, defaults and sentences, laid out as the page of a terminal wants them."""
import concurrent.futures
import os
import pathlib
import re
import subprocess
import sys

XPUSIM = sys.argv[1]
WIDTH, COLUMN = 96, 24
BAD = []
OPTION = re.compile(r"^  (?:-(?P<letter>\w), )?--(?P<name>[a-z][a-z0-9-]*)(?: (?P<value>\S.*?))?$")


def said(*words):
    r = subprocess.run([XPUSIM, *words], capture_output=True, text=True, stdin=subprocess.DEVNULL)
    if r.returncode != 0 or r.stderr:
        BAD.append(f"{' '.join(words)}: exit {r.returncode}: {r.stderr[:200]}")
    return r.stdout


def options_of(name, text):
    """name -> (letter, value, text) of the help of a command, and its options for side B."""
    found, last, sides = {}, None, set()
    for i, line in enumerate(text.split("\n")):
        if re.match(r"    --b-", line):
            sides |= set(re.findall(r"--(b-[\w-]+)", line))
            continue
        # The name's part is short and the text begins at its column, or the text is on lines of its own.
        one = len(line) > COLUMN and line[COLUMN - 1] == " " and line[COLUMN] != " "
        left, right = (line[:COLUMN].rstrip(), line[COLUMN:]) if one else (line, "")
        m = OPTION.match(left) if line.startswith("  -") and "--b-NAME" not in line else None
        if line.startswith("  -") and not m and "--b-NAME" not in line:
            BAD.append(f"{name}: a line that is no option: {line!r}")
        if m:
            last = m.group("name")
            if last in found:
                BAD.append(f"{name}: --{last} is there twice")
            if not right and len(line) < COLUMN:
                BAD.append(f"{name}: --{last}: its text is on a line of its own, and would fit: {line!r}")
            if "  " in left[2:] or (right and len(line) > WIDTH and " " in right):
                BAD.append(f"{name}: --{last}: {line!r}")
            found[last] = [m.group("letter"), m.group("value"), right, len(line) if right else 0]
        elif last and re.match(rf" {{{COLUMN}}}\S", line):
            word = line.split()[0]
            if found[last][3] and found[last][3] + 1 + len(word) <= WIDTH:
                BAD.append(f"{name}: --{last}: `{word}` would fit on the line before")
            if len(line) > WIDTH and " " in line.strip():
                BAD.append(f"{name}: --{last}: a line has {len(line)} columns")
            found[last][2] += (" " if found[last][2] else "") + line.strip()
            found[last][3] = len(line)
        else:
            last = None
    return found, sides


def plain(roff):
    return re.sub(r"\\f[BIR]", "", roff).replace("\\-", "-").replace("\\&", "").replace("\\e", "\\")


def man_of(text):
    """name -> (letter, value, text), and the paragraphs of NAME, SYNOPSIS and DESCRIPTION."""
    found = {}
    for m in re.finditer(r"^\.TP\n(?:\\fB\\-(\w)\\fR, )?\\fB\\-\\-(\S+?)\\fR(?: \\fI(.*?)\\fR)?\n(.*)$", text, re.M):
        found[plain(m.group(2))] = [m.group(1), plain(m.group(3)) if m.group(3) else None, plain(m.group(4))]
    usage = [plain(f"{a} {b}").strip() for a, b in re.findall(r"^\.B (xpusim .*)\n(.*)\n\.br$", text, re.M)]
    about = re.search(r"\.SH DESCRIPTION\n\.nf\n\.fi\n(.*?)\n\.SH", text, re.S)
    return found, usage, plain(about.group(1)) if about else None


def try_command(words, subcommands):
    name = " ".join(words)
    text, man = said("help", *words), said("help", *words, "--man")
    found, sides = options_of(name, text)
    in_man, usage, about = man_of(man)
    for k in sorted(set(found) | set(in_man)):
        a, b = found.get(k, [None] * 3)[:3], in_man.get(k, [None] * 3)
        if k == "help" and k not in found:
            continue  # help does not show how it was asked for
        if a != b and not subcommands:
            BAD.append(f"{name}: --{k}: help {a}, man {b}")
    # The usage lines and the text before the options: the same words, at most so wide.
    head = text.split("\n\n")[0].split("\n")
    lines = [re.sub(r"^(usage:|      ) ", "", l).strip() for l in head]
    if lines != usage[:len(lines)]:
        BAD.append(f"{name}: usage {lines}, man {usage}")
    if about is not None and not subcommands:
        words_of = " ".join(about.split())
        if words_of not in " ".join(text.split()):
            BAD.append(f"{name}: the description of the man page is not in the help: {words_of[:80]}")
        body = text.split("\n\n", 1)[1]
        for paragraph in about.split("\n\n"):
            if not re.search(r"^ ", paragraph, re.M):
                at = body[:4000].find(paragraph.split(" ")[0])
                shown = body[at:].split("\n\n")[0].split("\n")
                if " ".join(" ".join(shown).split()) == " ".join(paragraph.split()) and "\n" not in paragraph:
                    for first, second in zip(shown, shown[1:]):
                        if len(first) > WIDTH or (second.split() and len(first) + 1 + len(second.split()[0]) <= WIDTH):
                            BAD.append(f"{name}: a line of its description is {len(first)} wide: {first!r}")
    # An option that a usage line has is in the table.
    for l in lines:
        for option in re.findall(r"--([a-z][\w-]*)", l):
            if option not in found and option not in sides and not subcommands and option not in ("help", "version", "b-OPTION") and not any(o.startswith(option) for o in found):
                BAD.append(f"{name}: its usage has --{option}, its options have not")
    return words, found, sides, man.split("\n")[0]


def completions(all_found, commands):
    bash, zsh, fish = (said("help", "--completion", shell) for shell in ("bash", "zsh", "fish"))
    if zsh != "#compdef xpusim\nautoload -U +X bashcompinit && bashcompinit\n" + bash:
        BAD.append("completions of zsh are not those of bash behind two lines")
    if "#compdef" in bash or "complete -c" in bash:
        BAD.append("completions of bash are of another shell")
    first = re.search(r'-eq 1 \]; then\n +words="(.*)"', bash)
    if not first or first.group(1).split() != list(commands):
        BAD.append(f"completions of bash: commands {first and first.group(1)}")
    rows = dict(re.findall(r'^        ([\w-]+)\) words="(.*)" ;;$', bash, re.M))
    for c in commands:
        own = [(w, f, s) for w, f, s, _ in all_found if w[0] == c]
        want = {f"--{o}" for w, f, s in own for o in list(f) + list(s)} | {"--help"} | {w[1] for w, _, _ in own if len(w) > 1}
        got = rows.get(c, "").split()
        if set(got) != want:
            BAD.append(f"completions of bash: {c}: {sorted(set(got) ^ want)} in one of them alone")
        lines = re.findall(rf"^complete -c xpusim -n '__fish_seen_subcommand_from {c}' -l (\S+?)( -r)? -d '(.*)'$", fish, re.M)
        top = next((f, s) for w, f, s, _ in all_found if w == [c])
        lines = [l for l in lines if l[0] != "help"]
        for o, takes, text in lines:
            if o not in top[0] and o not in top[1]:
                BAD.append(f"completions of fish: {c} --{o}")
            elif o in top[0] and (bool(takes) != (top[0][o][1] is not None) or not top[0][o][2].startswith(text.replace("\\'", "'"))):
                BAD.append(f"completions of fish: {c} --{o}{takes}: {text!r}, help {top[0][o]}")
        if {o for o, _, _ in lines} != set(top[0]) | set(top[1]):
            BAD.append(f"completions of fish: {c} has {len(lines)} of {len(top[0]) + len(top[1])} options")
        if f"complete -c xpusim -n __fish_use_subcommand -a {c} -d '{commands[c]}'" not in fish.replace("\\'", "'"):
            BAD.append(f"completions of fish: no summary of {c}")


def pages(known):
    """Options that a page gives to a command in a line of a shell."""
    n = 0
    for page in [*sorted(pathlib.Path("docs").glob("**/*.md")), *map(pathlib.Path, ("README.md", "traces/README.md", "policies/README.md", "hwmodels/README.md", "ARCHITECTURE.md"))]:
        text = page.read_text(encoding="utf-8").replace("\\\n", " ")
        for line in re.findall(r"(?:^|[`$ /])xpusim ([a-z][^`\n|;&>]*)", text):
            words = re.sub(r"'[^']*'|\"[^\"]*\"", "''", line).split(" #")[0].split()
            name = next((k for k in (tuple(words[:2]), tuple(words[:1])) if k in known), None)
            for option in re.findall(r"(?<= )--([a-z][\w-]*)", " ".join([""] + words[1:])) if name else []:
                n += 1
                if option not in known[name] and not any(o.startswith(option) for o in known[name]) and option not in ("help", "version", "b-OPTION"):
                    BAD.append(f"{page}: xpusim {' '.join(name)} has no option --{option}")
    return n


def main():
    top = said("help")
    commands = dict(re.findall(r"^  ([a-z][\w-]*) +(\S.*)$", top, re.M))
    tasks = []
    for c in commands:
        subs = re.findall(rf"^  {c} ([\w-]+) +\S", said("help", c), re.M)
        tasks += [([c], bool(subs))] + [([c, s], False) for s in subs]
    with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        results = list(pool.map(lambda t: try_command(*t), tasks))
    completions(results, commands)
    listed = said("help", "--man")
    for c, summary in commands.items():
        if f".TP\n.BR xpusim\\-{c} (1)\n{summary}\n" not in listed.replace("\\-", "-").replace(f"xpusim-{c} (1)", f"xpusim\\-{c} (1)"):
            BAD.append(f"the man page of xpusim has no {c}: {summary}")
        mine = next(r[3] for r in results if r[0] == [c])
        if not mine.startswith(f'.TH "XPUSIM-{c}" 1 "" "xpusim '):
            BAD.append(f"man page of {c}: {mine}")
    if not listed.startswith('.TH "XPUSIM" 1 "" "xpusim ') or ".SH NAME\nxpusim \\- a simulator" not in listed:
        BAD.append(f"man page of xpusim: {listed[:120]}")
    known = {tuple(w): set(f) | s for w, f, s, _ in results}
    n = sum(len(k) for k in known.values())
    in_docs = pages(known)
    print("\n".join(f"FAILED: {b}" for b in BAD[:40]))
    print(f"{len(results)} commands, {n} options, {in_docs} uses in docs")
    return 1 if BAD or n < 400 or in_docs < 300 else 0


sys.exit(main())
