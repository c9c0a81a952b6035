"""Checks JSON files against a JSON Schema: type, properties, required, items, enum, ranges,
additionalProperties, anyOf, $ref within the file or to a file beside it. schema.py SCHEMA FILE... [-- SCHEMA FILE...]...; exit 1 and where for the
first breach of each.
"""
import itertools
import json
import sys
from pathlib import Path

TYPES = {"object": dict, "array": list, "string": str, "boolean": bool, "null": type(None), "number": (int, float)}
KNOWN = {"$schema", "$id", "$comment", "$defs", "$ref", "title", "description", "unit", "type", "properties", "required",
         "items", "enum", "minimum", "maximum", "minItems", "maxItems", "additionalProperties", "anyOf", "examples", "default"}


def is_type(value, name):
    if name == "integer":
        return isinstance(value, (int, float)) and not isinstance(value, bool) and value == int(value)
    if name == "number" and isinstance(value, bool):
        return False
    return isinstance(value, TYPES[name])


class Schema:
    def __init__(self, path):
        self.path = Path(path)
        self.root = json.loads(self.path.read_text(encoding="utf-8"))

    def find(self, ref):
        """The schema a $ref names, and the file it is in."""
        file, _, inner = ref.partition("#")
        home = Schema(self.path.parent / file) if file else self
        node = home.root
        for part in filter(None, inner.split("/")):
            node = node[part]
        return home, node

    def breach(self, value, schema=None, at="$"):
        """Where and how a value breaks the schema; None when it does not."""
        schema = self.root if schema is None else schema
        if schema is True or schema == {}:
            return None
        if schema is False:
            return f"{at}: not allowed"
        unknown = set(schema) - KNOWN
        assert not unknown, f"{self.path}: this checker does not know {unknown}"
        if "$ref" in schema:
            home, node = self.find(schema["$ref"])
            return home.breach(value, node, at)
        if "anyOf" in schema:
            found = [self.breach(value, one, at) for one in schema["anyOf"]]
            return None if None in found else found[0]
        types = schema.get("type", [])
        types = [types] if isinstance(types, str) else types
        if types and not any(is_type(value, t) for t in types):
            return f"{at}: {json.dumps(value)[:40]} is no {' or '.join(types)}"
        if "enum" in schema and value not in schema["enum"]:
            return f"{at}: {json.dumps(value)[:40]} is none of {schema['enum']}"
        if is_type(value, "number") and not schema.get("minimum", value) <= value <= schema.get("maximum", value):
            return f"{at}: {value} is not from {schema.get('minimum')} to {schema.get('maximum')}"
        if isinstance(value, list) and not schema.get("minItems", 0) <= len(value) <= schema.get("maxItems", len(value)):
            return f"{at}: {len(value)} items"
        if isinstance(value, dict):
            return self.breach_of_members(value, schema, at)
        if isinstance(value, list) and "items" in schema:
            for i, item in enumerate(value):
                found = self.breach(item, schema["items"], f"{at}[{i}]")
                if found:
                    return found
        return None

    def breach_of_members(self, value, schema, at):
        for name in schema.get("required", []):
            if name not in value:
                return f"{at}: {name} is missing"
        properties = schema.get("properties", {})
        for name, member in value.items():
            inner = properties.get(name, schema.get("additionalProperties", True))
            found = f"{at}.{name}: no such key" if inner is False else self.breach(member, inner, f"{at}.{name}")
            if found:
                return found
        return None


def main(schema, files):
    checker = Schema(schema)
    bad = not files
    for file in files:
        text = sys.stdin.read() if file == "-" else Path(file).read_text(encoding="utf-8")
        found = checker.breach(json.loads(text))
        if found:
            print(f"{file}: not as {schema}: {found}")
            bad = 1
    return bad


def groups(words):
    for word, group in itertools.groupby(words, lambda w: w == "--"):
        if not word:
            yield list(group)


if __name__ == "__main__":
    sys.exit(max(main(schema, files) for schema, *files in groups(sys.argv[1:])))
