"""Two threads at a time in C code that runs without Python's lock, and a deep recursion of Python code.

Prints the nanoseconds of processor time and of elapsed time in each."""
import sys
import threading
import time
import zlib

DATA = bytes(range(256)) * 400


def compress(seconds):
    started = time.perf_counter_ns()
    begin = now = time.thread_time_ns()
    while now < begin + seconds * 1e9:
        zlib.compress(DATA, 9)
        now = time.thread_time_ns()
    return now - begin, time.perf_counter_ns() - started


def one(seconds):
    spent["one"] = compress(seconds)


def other(seconds):
    spent["other"] = compress(seconds)


def deep(depth):
    if depth:
        return deep(depth - 1)
    spent["deep"] = compress(0.5)


spent = {}
# A while before it, for the tables that stacks are walked by.
compress(1.5)
sys.setrecursionlimit(10000)
threads = [threading.Thread(target=one, args=(0.5,)), threading.Thread(target=other, args=(1,))]
for thread in threads:
    thread.start()
for thread in threads:
    thread.join()
deep(1500)
for name, nanoseconds in spent.items():
    print(name, *nanoseconds)
