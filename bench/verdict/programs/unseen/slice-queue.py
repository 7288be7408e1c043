"""Takes the first of a queue by slicing the rest off; the fix uses a deque."""
import sys
from collections import deque


def drain(queue):
    total = 0
    while queue:
        if sys.argv[1] == "after":
            job = queue.popleft()
        else:
            job, queue = queue[0], queue[1:]  # SLOW
        total += job % 7
    return total


after = sys.argv[1] == "after"
total = 0
for _ in range(3):
    jobs = range(26000)
    total += drain(deque(jobs) if after else list(jobs))
print(total, file=sys.stderr)
