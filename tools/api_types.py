#!/usr/bin/env python3
"""Writes ui/src/schema.ts, the types of the API's answers, from docs/openapi.json.

    api_types.py            writes the file
    api_types.py --print    shows what it would write
"""
import json
import os
import sys

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
SCHEMA = os.path.join(ROOT, "docs", "openapi.json")
TYPES = os.path.join(ROOT, "ui", "src", "schema.ts")
HEAD = "/* The server's answers. Made by tools/api_types.py from docs/openapi.json: change that instead. */\n"
SCALARS = {"integer": "number", "number": "number", "string": "string", "boolean": "boolean",
           "null": "null"}


def union(types):
    """Each once, in order."""
    return " | ".join(dict.fromkeys(types))


def is_named(schema):
    """Objects and enumerations have a name of their own; numbers, texts and lists need none."""
    return schema.get("type") == "object" or "enum" in schema


def type_of(schema, schemas):
    if "$ref" in schema:
        name = schema["$ref"].rsplit("/", 1)[1]
        return name if is_named(schemas[name]) else type_of(schemas[name], schemas)
    if "anyOf" in schema:
        return union(type_of(s, schemas) for s in schema["anyOf"])
    if "enum" in schema:
        return union("null" if v is None else f"'{v}'" for v in schema["enum"])
    kinds = schema["type"] if isinstance(schema["type"], list) else [schema["type"]]
    if kinds == ["array"]:
        items = type_of(schema["items"], schemas)
        return f"({items})[]" if " " in items else f"{items}[]"
    return union(SCALARS[k] for k in kinds)


def declare(name, schema, schemas):
    if schema.get("type") != "object":
        return f"export type {name} = {type_of(schema, schemas)};\n"
    lines = [f"  {field}{'' if field in schema['required'] else '?'}: {type_of(s, schemas)};\n"
             for field, s in schema["properties"].items()]
    return f"export interface {name} {{\n{''.join(lines)}}}\n"


def generate():
    with open(SCHEMA, encoding="utf-8") as f:
        schemas = json.load(f)["components"]["schemas"]
    parts = [declare(name, s, schemas) for name, s in schemas.items() if is_named(s)]
    return HEAD + "\n" + "\n".join(parts)


def main():
    if sys.argv[1:] == ["--print"]:
        print(generate(), end="")
    else:
        with open(TYPES, "w", encoding="utf-8") as f:
            f.write(generate())


if __name__ == "__main__":
    main()
