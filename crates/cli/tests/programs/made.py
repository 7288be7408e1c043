"""Burns processor time in functions that are made one after the other and gone again, each in the other's place.

Prints the nanoseconds of processor time and of elapsed time of each."""
import sys
import time

SOURCE = """def made_%03d():
    started = time.perf_counter_ns()
    begin = now = time.thread_time_ns()
    while now < begin + %d:
        now = time.thread_time_ns()
    return now - begin, time.perf_counter_ns() - started
"""
# The recorder is told of a new program's interpreter while that program runs already: longer on a busy machine.
while time.thread_time_ns() < 300_000_000:
    sum(range(200))
for number in range(int(sys.argv[1])):
    names = {"time": time}
    exec(SOURCE % (number, int(sys.argv[2])), names)
    print("made_%03d" % number, *names["made_%03d" % number]())
    del names
