"""Matches with more patterns than the cache of re holds, so that each is compiled again; the fix keeps them compiled."""
import re
import sys

WORDS = [f"field{i}" for i in range(700)]
KEPT = {}


def pattern_of(word):
    return rf"^{word}=(\d+);(\w*)$"


def value_of(word, line):
    if sys.argv[1] == "after":
        pattern = KEPT.get(word)
        if pattern is None:
            pattern = KEPT[word] = re.compile(pattern_of(word))
        return pattern.match(line)
    return re.match(pattern_of(word), line)  # SLOW


def parse_all(rounds):
    found = 0
    for number in range(rounds):
        for word in WORDS:
            if value_of(word, f"{word}={number};x"):
                found += 1
    return found


print(parse_all(45), file=sys.stderr)
