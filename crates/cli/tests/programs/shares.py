"""Burns processor time in functions that are called in many ways, through C code too, and prints how much in each.

A line for each way: the functions from the outermost to the innermost, and the nanoseconds of processor time
and of elapsed time."""
import collections
import os
import sys
import threading
import time

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


def comprehending():
    return [burn("main;comprehending;comprehending.<locals>.<listcomp>;burn", 1 / 20) for _ in range(20)]


def mapping():
    list(map(lambda _: burn("main;mapping;mapping.<locals>.<lambda>;burn", 1 / 20), range(20)))


def deeper(depth):
    if depth:
        return deeper(depth - 1)
    burn("main;" + "deeper;" * 40 + "burn")


class Compared:
    def __lt__(self, other):
        burn("main;comparing;Compared.__lt__;burn")
        return True


def comparing():
    min(Compared(), Compared())


def delegated():
    yield from numbers_of_others()


def numbers_of_others():
    for number in range(20):
        burn("main;delegating;delegated;numbers_of_others;burn", 1 / 20)
        yield number


def delegating():
    for _ in delegated():
        pass


def in_thread():
    burn("Thread._bootstrap;Thread._bootstrap_inner;Thread.run;in_thread;burn")


def main():
    plain()
    sorting()
    summing()
    comprehending()
    mapping()
    deeper(39)
    comparing()
    delegating()


main()
thread = threading.Thread(target=in_thread)
thread.start()
thread.join()
child = os.fork()
if child == 0:
    spent.clear()
    elapsed.clear()


    def only_in_the_child():
        burn("only_in_the_child;burn")

    only_in_the_child()
else:
    os.waitpid(child, 0)
for way, nanoseconds in spent.items():
    print(way, nanoseconds, elapsed[way])
