"""Threads that never go on: two that deadlock, one that reads what nobody sends, one that waits for work in a generator, and the main thread,
which waits for them. Says so once they all wait."""
import queue
import socket
import threading
import time

locks = [threading.Lock(), threading.Lock()]
both = threading.Barrier(2)
here, there = socket.socketpair()
work = queue.Queue()


def takes_both(own):
    with locks[own]:
        both.wait()
        takes_other(1 - own)


def takes_other(other):
    with locks[other]:
        pass


def hangs_in_recv():
    here.recv(1)


def jobs():
    while True:
        yield work.get()


def waits_for_work():
    for job in jobs():
        job()


def called_by_native():
    # The sort calls back: a round of the interpreter's loop beyond another.
    sorted([2, 1], key=lambda _: here_too.wait())


here_too = threading.Event()


def main():
    threads = [threading.Thread(target=takes_both, args=(own,)) for own in range(2)]
    threads += [threading.Thread(target=target) for target in (hangs_in_recv, waits_for_work, called_by_native)]
    for thread in threads:
        thread.start()
    time.sleep(0.5)
    print("hangs", flush=True)
    for thread in threads:
        thread.join()


main()
