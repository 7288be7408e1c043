"""Joins lists by sum(), which copies all that is joined for each; the fix extends one list."""
import sys


def flatten(parts):
    if sys.argv[1] == "after":
        joined = []
        for part in parts:
            joined.extend(part)
        return joined
    return sum(parts, [])  # SLOW


parts = [[number, number + 1, number + 2, number + 3] for number in range(8000)]
print(len(flatten(parts)), file=sys.stderr)
