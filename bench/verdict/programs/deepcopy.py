"""Copies a whole configuration to change one entry; the fix copies what it changes."""
import copy
import sys

BASE = {"limits": {f"limit{i}": i for i in range(40)}, "hosts": [f"host{i}" for i in range(40)], "retry": {"count": 3}}


def weigh(value):
    """The rest of the work: what a fix leaves."""
    for digit in str(value):
        value = (value * 31 + ord(digit)) % 1000003
    return value


def configure(number):
    if sys.argv[1] == "after":
        config = {**BASE, "retry": dict(BASE["retry"])}
    else:
        config = copy.deepcopy(BASE)  # SLOW
    config["retry"]["count"] = number
    return config


total = 0
for number in range(22000):
    total += configure(number)["retry"]["count"] + sum(weigh(number + i) for i in range(40)) % 2
print(total, file=sys.stderr)
