"""Threads that wait in calls of many kinds. Prints what Python itself says of their stacks, then waits."""
import sys
import threading
import time
import traceback


class Outer:
    def method(self, depth):
        if depth:
            # The call is not in the first line of its statement.
            return (
                self.method(depth - 1)
            )
        return sorted([3, 1], key=lambda n: wait(n))

    class Inner:
        @staticmethod
        def call():
            yield Outer().method(2)


class Meeting:
    def __lt__(self, other):
        return list(map(lambda _: next(Outer.Inner.call()), [1]))


def wait(_):
    arrived.release()
    time.sleep(1000)


def ünïcode():
    sorted([Meeting(), Meeting()])


def 漢字():
    exec("def made():\n\n  wait(0)\n\nmade()", globals())


def main():
    # All in one statement that spans lines, so that the one that runs is told apart.
    time.sleep(
        1000
    )


arrived = threading.Semaphore(0)
threads = [threading.Thread(target=target, daemon=True) for target in (ünïcode, 漢字)]
for thread in threads:
    thread.start()
for thread in threads:
    arrived.acquire()
for thread in threads:
    for frame, line in traceback.walk_stack(sys._current_frames()[thread.ident]):
        code = frame.f_code
        name = getattr(code, "co_qualname", code.co_name)
        print(thread.native_id, line, name, code.co_filename, sep="\t")
print("ready", flush=True)
main()
