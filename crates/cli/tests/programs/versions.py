"""Burns processor time in functions that are called in several ways, and prints how much in each.

A line for each way: the functions from the outermost to the innermost, and the nanoseconds of processor time
and of elapsed time. It runs on every version of
Python 3. With numpy a function of that calls back, and one sorts without Python."""
import collections
import sys
import time

try:
    import numpy
except ImportError:
    numpy = None

spent = collections.Counter()
elapsed = collections.Counter()
SECONDS = float(sys.argv[1])


def burn(way, share=1.0):
    started = time.perf_counter_ns()
    begin = now = time.thread_time_ns()
    end = begin + int(SECONDS * share * 1e9)
    while now < end:
        sum(range(200))
        now = time.thread_time_ns()
    spent[way] += now - begin
    elapsed[way] += time.perf_counter_ns() - started


def plain():
    burn("main;plain;burn")


def by_key(number):
    burn("main;sorting;by_key;burn", 1 / 20)
    return -number


def sorting():
    sorted(range(20), key=by_key)


def numbers():
    for number in range(20):
        burn("main;summing;numbers;burn", 1 / 20)
        yield number


def summing():
    sum(numbers())


def deeper(depth):
    if depth:
        return deeper(depth - 1)
    burn("main;" + "deeper;" * 40 + "burn")


def by_numpy(row):
    burn("main;applying;by_numpy;burn", 1 / 20)
    return row[0]


def applying():
    numpy.apply_along_axis(by_numpy, 1, numpy.zeros((20, 2)))


def sorts_alone(numbers):
    started = time.perf_counter_ns()
    begin = now = time.thread_time_ns()
    while now - begin < SECONDS * 1e9:
        numpy.sort(numbers)
        now = time.thread_time_ns()
    spent["main;sorts_alone"] += now - begin
    elapsed["main;sorts_alone"] += time.perf_counter_ns() - started


def main():
    plain()
    sorting()
    summing()
    deeper(39)
    if numpy:
        applying()
        sorts_alone(numpy.random.default_rng(1).random(200_000))


main()
for way, nanoseconds in spent.items():
    print(way, nanoseconds, elapsed[way])
