# Calls machine code that it has made, and prints the processor time and the elapsed time that this took, in nanoseconds.
import ctypes
import mmap
import time

# mov rax, rdi; 1: dec rax; jnz 1b; ret
CODE = bytes.fromhex("4889f848ffc875fbc3")


def make():
    memory = mmap.mmap(-1, 4096, prot=mmap.PROT_READ | mmap.PROT_WRITE | mmap.PROT_EXEC)
    memory.write(CODE)
    address = ctypes.addressof(ctypes.c_char.from_buffer(memory))
    return memory, ctypes.CFUNCTYPE(ctypes.c_long, ctypes.c_long)(address)


def spins(function):
    started, begin = time.perf_counter_ns(), time.thread_time_ns()
    for _ in range(100):
        function(20_000_000)
    return time.thread_time_ns() - begin, time.perf_counter_ns() - started


def calls_spins(function):
    return spins(function)


def warms(function):
    # Until the tables of all that is called are there.
    begin = time.thread_time_ns()
    while time.thread_time_ns() - begin < 1_000_000_000:
        function(1)


memory, function = make()
warms(function)
print("spins", *calls_spins(function))
