"""Copies a record by writing and reading JSON; the fix copies the dictionary."""
import json
import sys

RECORD = {"id": 1, "tags": [f"tag{i}" for i in range(30)], "score": 1.5, "name": "a name", "parts": {f"p{i}": i for i in range(30)}}


def weigh(value):
    """The rest of the work: what a fix leaves."""
    for digit in str(value):
        value = (value * 31 + ord(digit)) % 1000003
    return value


def snapshot(record):
    if sys.argv[1] == "after":
        return {**record, "tags": list(record["tags"]), "parts": dict(record["parts"])}
    return json.loads(json.dumps(record))  # SLOW


total = 0
for number in range(40000):
    RECORD["id"] = number
    total += snapshot(RECORD)["id"] + sum(weigh(number + i) for i in range(10)) % 2
print(total, file=sys.stderr)
