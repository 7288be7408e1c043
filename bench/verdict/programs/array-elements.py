"""Goes through a numpy array element by element; the fix computes with the whole array."""
import sys

import numpy


def weigh(prices, weights):
    if sys.argv[1] == "after":
        return float((prices * weights).sum())
    total = 0.0
    for i in range(len(prices)):
        total += prices[i] * weights[i]  # SLOW
    return total


prices = numpy.arange(1000000) % 128 * 0.5
weights = numpy.arange(1000000) % 64 * 0.25
total = 0.0
for _ in range(8):
    total += weigh(prices, weights)
print(f"{total:.1f}", file=sys.stderr)
