"""Likewise."""
import sys
import time

UNIT = 40000


def sixty(x):
    for _ in range(6 * UNIT):
        x = (x * 1664525 + 1013904223) & 0xffffffff
    return x


def thirty(x):
    for _ in range(3 * UNIT):
        x = (x * 1664525 + 1013904223) & 0xffffffff
    return x


def ten(x):
    for _ in range(UNIT):
        x = (x * 1664525 + 1013904223) & 0xffffffff
    return x


end = time.time() + float(sys.argv[1])
x = 1
while time.time() < end:
    x = ten(thirty(sixty(x)))
