"""Takes from the front of a list; the fix takes from a deque."""
import sys
from collections import deque


def weigh(value):
    """The rest of the work: what a fix leaves."""
    for digit in str(value):
        value = (value * 31 + ord(digit)) % 1000003
    return value


def drain(jobs):
    take = jobs.popleft if isinstance(jobs, deque) else None
    total = 0
    while jobs:
        job = take() if take else jobs.pop(0)  # SLOW
        for n in range(4):
            total += weigh(job + n) % 2
    return total


jobs = list(range(110000))
print(drain(deque(jobs) if sys.argv[1] == "after" else jobs), file=sys.stderr)
