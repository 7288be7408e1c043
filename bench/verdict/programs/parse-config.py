"""Reads and parses its configuration for each request; the fix does so once."""
import functools
import json
import sys

with open("config.json", "w", encoding="utf-8") as file:
    json.dump({f"key{i}": {"limit": i, "rate": i / 7, "hosts": [f"h{j}" for j in range(6)]} for i in range(100)}, file)


def load():
    with open("config.json", encoding="utf-8") as file:
        return json.load(file)  # SLOW


if sys.argv[1] == "after":
    load = functools.lru_cache(load)


def serve(number):
    return load()[f"key{number % 100}"]["limit"]


print(sum(serve(number) for number in range(7000)), file=sys.stderr)
