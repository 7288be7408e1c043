"""Counts words of generated lines with a Counter and one precompiled expression: nothing to mend."""
import collections
import re
import sys

WORD = re.compile(r"[a-z]+")
LINE = " ".join(f"w{chr(97 + number % 26)}{chr(97 + number // 26)}" for number in range(300))


def count(lines):
    counts = collections.Counter()
    for _ in range(lines):
        counts.update(WORD.findall(LINE))
    return counts


print(len(count(22000)), file=sys.stderr)
