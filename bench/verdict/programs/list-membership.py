"""Asks a list whether it holds a number; the fix asks a set."""
import sys


def weigh(value):
    """The rest of the work: what a fix leaves."""
    for digit in str(value):
        value = (value * 31 + ord(digit)) % 1000003
    return value


def count_allowed(requests, allowed):
    count = 0
    for request in requests:
        if request in allowed:  # SLOW
            count += 1 + weigh(request) % 2
    return count


allowed = list(range(0, 600, 3))
if sys.argv[1] == "after":
    allowed = set(allowed)
print(count_allowed([(i * 7919) % 600 for i in range(600000)], allowed), file=sys.stderr)
