"""Looks up with an exception for each key that is missing; the fix uses get()."""
import sys


class Registry:
    def __init__(self, names):
        self.names = names

    def find(self, key):
        if key not in self.names:
            raise KeyError(f"no entry for {key!r}")
        return self.names[key]


def resolve(registry, key):
    if sys.argv[1] == "after":
        return registry.names.get(key, 0)
    try:
        return registry.find(key)  # SLOW
    except KeyError:
        return 0


registry = Registry({i: i for i in range(0, 1000, 10)})
total = 0
for i in range(1500000):
    total += resolve(registry, i % 1000)
print(total, file=sys.stderr)
