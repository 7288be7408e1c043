"""Clean: groups records by a field in one pass, with a dictionary and built-in functions."""
import sys

records = [(i % 1009, i * 7 % 13, float(i % 101)) for i in range(400000)]


def grouped(records):
    sums = {}
    for key, kind, amount in records:
        if kind < 9:
            sums[key] = sums.get(key, 0.0) + amount
    return sums


total = 0.0
for _ in range(14):
    total += max(grouped(records).values())
print(total, file=sys.stderr)
