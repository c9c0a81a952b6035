"""Damages results and asks whether their schemas tell. Lines of standard input: what, Python over the tree r that does it, what
must be said, schema and result, with tabs between; exit 1 with what was not told."""
import json
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))
from schema import Schema


def main(lines):
    bad, n = 0, 0
    for line in lines:
        what, damage, said, schema, file = line.rstrip("\n").split("\t")
        result = json.loads(Path(file).read_text(encoding="utf-8"))
        exec(damage, {"r": result})
        found, n = Schema(schema).breach(result), n + 1
        if found is None or said not in found:
            print(f"{what}: " + ("is not found" if found is None else f"does not say where: {found}"))
            bad = 1
    return bad or n == 0


if __name__ == "__main__":
    sys.exit(main(sys.stdin))
