"""Computes in two threads, of which the interpreter lets one run at a time; the fix computes in two processes."""
import multiprocessing
import sys
import threading


def collatz(first):
    longest = 0
    for start in range(first, 200000, 2):
        steps, n = 0, start
        while n != 1:
            n = n // 2 if n % 2 == 0 else 3 * n + 1  # SLOW
            steps += 1
        longest = max(longest, steps)
    results.put(longest)


if __name__ == "__main__":
    if sys.argv[1] == "after":
        context = multiprocessing.get_context("fork")
        results, worker = context.SimpleQueue(), context.Process
    else:
        import queue
        results, worker = queue.SimpleQueue(), threading.Thread
    workers = [worker(target=collatz, args=(first,)) for first in (1, 2)]
    for one in workers:
        one.start()
    for one in workers:
        one.join()
    print(max(results.get(), results.get()), file=sys.stderr)
