"""What xpusim writes, for notebooks: runs, comparisons, stores, request tables, decision logs.

Tables are pandas DataFrames where pandas is installed, else lists of dicts with the same columns."""

from __future__ import annotations

import contextlib
import html
import json
import os
import shutil
import sqlite3
import subprocess
import tempfile
from typing import Any, Dict, Iterable, List, Mapping, Optional, Sequence, Union

Path = Union[str, "os.PathLike[str]"]


class XpusimError(RuntimeError):
    """xpusim ended with an error: its words."""


def table(rows: Iterable[Mapping[str, Any]]) -> Any:
    """Rows as a DataFrame, or as they are without pandas."""
    rows = [dict(r) for r in rows]
    try:
        import pandas
    except ImportError:
        return rows
    return pandas.DataFrame(rows)


def binary() -> str:
    """The xpusim to run: $XPUSIM, else the build or the prefix that this package lies in, else PATH."""
    here = os.path.abspath(__file__)
    up = [here]
    for _ in range(7):
        up.append(os.path.dirname(up[-1]))
    found = [os.path.join(u, *place) for u in up for place in (("build", "xpusim"), ("bin", "xpusim"))]
    for path in [os.environ.get("XPUSIM", "")] + found:
        if path and os.path.isfile(path) and os.access(path, os.X_OK):
            return path
    path = shutil.which("xpusim")
    if path is None:
        raise XpusimError("there is no xpusim in $XPUSIM, beside this package or in PATH")
    return path


def _call(command: Sequence[str]) -> Any:
    done = subprocess.run([binary(), *command, "--json"], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                          check=False)
    try:
        result = json.loads(done.stdout)
    except ValueError:
        result = None
    if done.returncode == 2 or result is None:  # 1: a failed run, or check, beside what there is to show
        raise XpusimError(done.stderr.strip() or "xpusim ended with status %d" % done.returncode)
    return result


def _word(x: Any) -> str:
    """A value as xpusim reads it."""
    return str(x).lower() if isinstance(x, bool) else str(x)


def _options(options: Mapping[str, Any]) -> List[str]:
    """load=[0.5, 1], seed=3, set={"sim.horizon_s": 60, "sim.prefix_reuse": False} as a command line."""
    out: List[str] = []
    for key, value in options.items():
        name = "--" + key.strip("_").replace("_", "-")
        if isinstance(value, Mapping):
            for path, x in value.items():
                out += [name, "%s=%s" % (path, _word(x))]
        elif isinstance(value, bool):
            out += [name] if value else []
        elif isinstance(value, (list, tuple)) and name != "--load":
            for x in value:
                out += [name, str(x)]
        elif value is not None:
            out += [name, ",".join(map(str, value)) if isinstance(value, (list, tuple)) else str(value)]
    return out


def run(policy: str, **options: Any) -> Dict[str, Any]:
    """`xpusim run --json`: run("edf", workload="mixed:...", seed=3, set={"sim.horizon_s": 600})."""
    return _call(["run", "--policy", policy, *_options(options)])


class Comparison:
    """Of `compare`. `table` has a row for each policy and metric (and point of a suite, and load): mean, the ends of its
    95 % interval, and of others than the baseline the paired difference with its interval, p and verdict. With `select`
    it has a row for each policy, with the metric that decides. `raw` is all that xpusim said."""

    def __init__(self, raw: Dict[str, Any]) -> None:
        self.raw = raw
        self.baseline = raw["points"][0]["baseline"] if "points" in raw else raw["baseline"]

    @property
    def table(self) -> Any:
        rows = []
        parts = [(point, part) for point in self.raw.get("points", [self.raw]) for part in point.get("loads", [point])]
        for point, part in parts:
            where = {"point": point["point"]} if "point" in point else {}
            where.update({"load": part["load"]} if "load" in part else {})
            chosen = part.get("selection")
            for policy, value in (chosen or part)["policies"].items():
                for metric, of in ({chosen["metric"]: value} if chosen else value).items():
                    rows.append(dict(where, policy=policy, metric=metric, **of))
        keys = dict.fromkeys(key for r in rows for key in r)  # the baseline has no difference, and yet its keys
        return table({key: r.get(key) for key in keys} for r in rows)

    def metric(self, name: str) -> Any:
        """The rows of one metric."""
        rows = self.table
        return rows[rows["metric"] == name] if hasattr(rows, "columns") else [r for r in rows if r["metric"] == name]

    def page(self) -> str:
        """The page that `xpusim report` makes of it; with figures where gnuplot is installed."""
        with tempfile.TemporaryDirectory() as folder:
            result, page = os.path.join(folder, "compare.json"), os.path.join(folder, "page.html")
            with open(result, "w", encoding="utf-8") as f:
                json.dump(self.raw, f)
            figures = [] if shutil.which("gnuplot") else ["--no-figures"]
            done = subprocess.run([binary(), "report", result, "-o", page, "--quiet", *figures], stderr=subprocess.PIPE,
                                  text=True, check=False)
            if done.returncode != 0:
                raise XpusimError(done.stderr.strip())
            with open(page, encoding="utf-8") as f:
                return f.read()

    def _repr_html_(self) -> str:
        return '<iframe srcdoc="%s" style="width: 100%%; height: 45em; border: 0"></iframe>' % html.escape(self.page())

    def __repr__(self) -> str:
        return "Comparison on %s, baseline %s" % (self.raw.get("suite") or self.raw["workload"], self.baseline)


def compare(*policies: str, **options: Any) -> Comparison:
    """`xpusim compare --json`: compare("fcfs", "python:my.py:Mine", replications=20, baseline="fcfs")."""
    command = ["compare", "--quiet"]
    for p in policies:
        command += ["--policy", p]
    return Comparison(_call(command + _options(options)))


# ---- files ----


def read_result(path: Path) -> Dict[str, Any]:
    """What `run --json` or `compare --json` wrote."""
    with open(path, encoding="utf-8") as f:
        return json.load(f)


def _number(text: str) -> Any:
    for kind in (int, float):
        try:
            return kind(text)
        except ValueError:
            pass
    return text if text else None


def read_requests(path: Path) -> Any:
    """What `run --requests` wrote: a row for each request, times in s."""
    import csv
    with open(path, encoding="utf-8", newline="") as f:
        lines = (line for line in f if not line.startswith("#"))
        return table({k: _number(v) for k, v in row.items()} for row in csv.DictReader(lines))


def read_store(path: Path, metrics: Sequence[str] = ("*",)) -> Any:
    """What `sweep` keeps: a row for each replication, with the varied settings as axis.NAME and the metrics whose
    names match (`*` is any text). Failures have their message and no metrics."""
    from fnmatch import fnmatchcase
    uri = "file:" + os.path.abspath(path).replace("?", "%3f").replace("#", "%23") + "?mode=ro"
    with contextlib.closing(sqlite3.connect(uri, uri=True)) as db:
        db.row_factory = sqlite3.Row
        names = [r["name"] for r in db.execute("SELECT name FROM pragma_table_info('metrics')")]
        wanted = [n for n in names if n != "run_id" and any(fnmatchcase(n, m) for m in metrics)]
        columns = "".join(', m."%s"' % n.replace('"', '""') for n in wanted)
        runs = db.execute(
            "SELECT e.name AS experiment, p.point, p.settings, b.replication, r.policy, r.params, r.soc, r.llm, r.workload,"
            " r.rate_scale, r.seed, r.verdict, NULL AS failure" + columns + " FROM members b"
            " JOIN experiments e ON e.id = b.experiment_id"
            " JOIN points p ON p.experiment_id = b.experiment_id AND p.point = b.point"
            " JOIN runs r ON r.id = b.run_id LEFT JOIN metrics m ON m.run_id = r.id"
            " ORDER BY e.id, p.point, b.replication").fetchall()
        failures = db.execute(
            "SELECT e.name AS experiment, p.point, p.settings, f.replication, f.message AS failure FROM failures f"
            " JOIN experiments e ON e.id = f.experiment_id"
            " JOIN points p ON p.experiment_id = f.experiment_id AND p.point = f.point"
            " ORDER BY e.id, p.point, f.replication").fetchall()
    rows = []
    for r in [*runs, *failures]:
        row = dict(r)
        for axis, value in json.loads(row.pop("settings") or "{}").items():
            row["axis." + axis] = value
        rows.append(row)
    return table(rows)


def read_decisions(path: Path) -> Any:
    """What `run --decisions` wrote: a row for each action with epoch, at_ns, action, its arguments and result (0, or a
    negative errno). A pass formed has its segments as (request, role, tokens). An action from a hook, which is refused,
    has that hook as `in`."""
    roles = ("prefill", "decode", "verify", "draft", "ahead")
    rows = []
    with open(path, encoding="utf-8") as f:
        for line in f:
            words = line.split()
            if len(words) < 5 or words[-2] != "=" or not words[0].isdigit():
                continue  # the policy's name, and what a policy says when it got stuck
            row: Dict[str, Any] = {"epoch": int(words[0]), "at_ns": int(words[1]), "action": words[2],
                                   "result": int(words[-1])}
            for word in words[3:-2]:
                key, equals, value = word.partition("=")
                if equals:
                    row[key] = _number(value)
                elif row["action"] == "form":
                    request, role, tokens = map(int, word.split(":"))
                    row.setdefault("segments", []).append((request, roles[role], tokens))
                else:
                    row["key"] = word
            rows.append(row)
    return table(rows)
