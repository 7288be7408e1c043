"""Sorts the whole list after each insertion; the fix inserts in order."""
import bisect
import sys


def weigh(value):
    """The rest of the work: what a fix leaves."""
    for digit in str(value):
        value = (value * 31 + ord(digit)) % 1000003
    return value


def insert(queue, item):
    if sys.argv[1] == "after":
        bisect.insort(queue, item)
        return queue
    queue.append(item)
    return sorted(queue, key=lambda entry: entry)  # SLOW


queue, seed = [], 1
for _ in range(5000):
    seed = (seed * 1103515245 + 12345) % 2147483648
    queue = insert(queue, seed + sum(weigh(seed + i) for i in range(100)) % 2)
print(queue[0], queue[-1], file=sys.stderr)
