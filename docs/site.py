#!/usr/bin/env python3
"""Builds the documentation as a static site with search: build/docs/site/index.html (`make docs`).

docs/README.md is the index: its links are the pages, in reading order. Pages of commands, metrics, settings and keys
are written from what build/xpusim prints. mkdocs makes the site; the stage can be made and checked without it.

    python3 docs/site.py             # stages the pages and runs mkdocs
    python3 docs/site.py --check     # stages, and fails where a page is in no index or a link leads nowhere
"""
import importlib.util
import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
BUILD = ROOT / os.environ.get("BUILD", "build")
STAGE = BUILD / "docs" / "pages"
INSTALL = "python3 -m venv build/docs/venv && build/docs/venv/bin/pip install --require-hashes -r docs/requirements.txt"
LINK = re.compile(r"(!?)\[([^\]]*)\]\(([^)\s]+)\)")
LISTS = {"metric": "Metrics", "setting": "Settings", "soc-keys": "Keys of machine files", "llm-keys": "Keys of model files"}


def xpusim(*words):
    run = subprocess.run([BUILD / "xpusim", *words], capture_output=True, text=True, check=True)
    return run.stdout


def resolve(page, target):
    """The path in the repository that a link of a page leads to, or None when it leaves the repository."""
    path = target.split("#")[0]
    if "://" in target or path == "":
        return None
    return os.path.normpath(os.path.join(os.path.dirname(page), path))


def index():
    """[(section, [(title, page)])] of docs/README.md."""
    sections, here = [], "docs/README.md"
    for line in (ROOT / here).read_text(encoding="utf-8").split("\n"):
        if line.startswith("## "):
            sections.append((line[3:], []))
        elif sections:
            for _, title, target in LINK.findall(line):
                page = resolve(here, target)
                if page and page.endswith(".md"):
                    sections[-1][1].append((title, page))
    return sections


def for_markdown(text):
    """Python-Markdown wants an empty line before a list, and four spaces before an inner one."""
    out, fenced = [], False
    for line in text.split("\n"):
        fenced ^= line.lstrip().startswith("```")
        item = re.match(r"( *)(?:[-*]|\d+\.) ", line)
        if item and not fenced and len(item.group(1)) <= 2:
            before = out[-1] if out else ""
            line = " " * (2 * len(item.group(1))) + line.lstrip()
            if before.strip() and not re.match(r" *(?:[-*]|\d+\.) ", before):
                out.append("")
        out.append(line)
    return "\n".join(out)


def stage_page(page, pages):
    """Copies a page and its pictures; a link to a file that is no page becomes its text."""

    def link(m):
        bang, title, target = m.groups()
        to = resolve(page, target)
        if to is None or to in pages:
            return m.group(0)
        if bang and (ROOT / to).is_file():
            (STAGE / to).parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(ROOT / to, STAGE / to)
            return m.group(0)
        return title

    text = LINK.sub(link, (ROOT / page).read_text(encoding="utf-8"))
    (STAGE / page).parent.mkdir(parents=True, exist_ok=True)
    (STAGE / page).write_text(for_markdown(text), encoding="utf-8")


def write(page, text):
    (STAGE / page).parent.mkdir(parents=True, exist_ok=True)
    (STAGE / page).write_text(text, encoding="utf-8")


def stage_commands():
    names = re.findall(r"^  ([a-z-]+) ", xpusim("help"), re.M)
    code = {name: xpusim("help", name) for name in names}
    write("reference/commands.md", "# Commands and options\n\n" + "".join(
        f"## {name}\n\n```text\n{text}```\n\n" for name, text in code.items()))


def stage_list(kind, title):
    rows = json.loads(xpusim("list", kind, "--json"))
    keys = list(dict.fromkeys(k for row in rows for k in row))
    cells = [["" if row.get(k) is None else str(row[k]).replace("|", "\\|") for k in keys] for row in rows]
    lines = [keys, ["---"] * len(keys), *cells]
    write(f"reference/{kind}.md", f"# {title}\n\n" + "".join("| " + " | ".join(line) + " |\n" for line in lines))


def stage(sections):
    shutil.rmtree(STAGE, ignore_errors=True)
    pages = {page for _, section in sections for _, page in section} | {"docs/README.md"}
    for page in sorted(pages):
        stage_page(page, pages)
    stage_commands()
    for kind, title in LISTS.items():
        stage_list(kind, title)
    generated = [("Commands and options", "reference/commands.md")]
    generated += [(title, f"reference/{kind}.md") for kind, title in LISTS.items()]
    nav = [{"Contents": "docs/README.md"}]
    for name, section in sections:
        rows = generated + section if name == "Reference" else section
        nav.append({name: [{re.sub(r"\.md$", "", title.split("/")[-1]): page} for title, page in rows]})
    config = {"site_name": "xpusim", "docs_dir": "pages", "site_dir": "site", "use_directory_urls": False,
              "theme": {"name": "readthedocs", "highlightjs": False}, "plugins": ["search"], "nav": nav}
    (STAGE.parent / "mkdocs.yml").write_text(json.dumps(config, indent=1), encoding="utf-8")  # JSON is YAML


def check(sections):
    """Every page of docs/ is in the index, and every link of an indexed page leads to a file."""
    bad = []
    pages = [page for _, section in sections for _, page in section]
    listed = subprocess.run(["git", "ls-files", "docs/*.md"], cwd=ROOT, capture_output=True, text=True, check=True)
    bad += [f"{p}: not in docs/README.md" for p in listed.stdout.split() if p not in pages and p != "docs/README.md"]
    for page in pages + ["docs/README.md"]:
        if not (ROOT / page).is_file():
            bad.append(f"docs/README.md: there is no {page}")
            continue
        for _, _, target in LINK.findall((ROOT / page).read_text(encoding="utf-8")):
            to = resolve(page, target)
            if to and not (ROOT / to).exists():
                bad.append(f"{page}: there is no {target}")
    print("".join(f"{b}\n" for b in bad), end="")
    return 1 if bad else 0


def mkdocs():
    """How to call mkdocs: of build/docs/venv, else of this Python; None when there is none."""
    python = STAGE.parent / "venv" / "bin" / "python3"
    if python.is_file():
        return [str(python), "-m", "mkdocs"]
    return [sys.executable, "-m", "mkdocs"] if importlib.util.find_spec("mkdocs") else None


def main(args):
    sections = index()
    bad = check(sections)
    stage(sections)
    if bad or args == ["--check"]:
        return bad
    command = mkdocs()
    if command is None:
        print(f"docs: mkdocs is not installed; this installs it: {INSTALL}")
        return 1
    run = subprocess.run([*command, "build", "--strict", "--quiet", "-f", str(STAGE.parent / "mkdocs.yml")], check=False)
    if run.returncode == 0:
        print(f"{STAGE.parent / 'site' / 'index.html'}")
    return run.returncode


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
