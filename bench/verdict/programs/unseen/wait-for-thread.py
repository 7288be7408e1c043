"""Looks every 3 ms whether a worker has a result; the fix waits for its queue."""
import hashlib
import queue
import sys
import threading
import time

asked, answers, done = queue.Queue(), queue.Queue(), []


def work():
    while True:
        number = asked.get()
        if number is None:
            return
        digest = hashlib.sha256(bytes([number % 256]) * 400000).digest()[0]
        done.append(digest)
        answers.put(digest)


def ask(number):
    asked.put(number)
    if sys.argv[1] == "after":
        return answers.get()
    while answers.empty():
        time.sleep(0.003)  # SLOW
    return answers.get()


threading.Thread(target=work).start()
total = sum(ask(number) for number in range(350))
asked.put(None)
print(total, file=sys.stderr)
