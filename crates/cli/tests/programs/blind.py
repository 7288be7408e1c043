# Calls machine code that it has made and that nobody can see through: it has no rules, and uses the frame pointer for something else.
# Prints the processor time and the elapsed time that this took, in nanoseconds.
import ctypes
import mmap
import time

# push rbp; sub rsp, 0x1000; xor ebp, ebp; mov rax, rdi; 1: dec rax; jnz 1b; add rsp, 0x1000; pop rbp; ret
CODE = bytes.fromhex("55" "4881ec00100000" "31ed" "4889f8" "48ffc8" "75fb" "4881c400100000" "5d" "c3")

memory = mmap.mmap(-1, 4096, prot=mmap.PROT_READ | mmap.PROT_WRITE | mmap.PROT_EXEC)
memory.write(CODE)
function = ctypes.CFUNCTYPE(ctypes.c_long, ctypes.c_long)(ctypes.addressof(ctypes.c_char.from_buffer(memory)))


def spins(count, times):
    started, begin = time.perf_counter_ns(), time.thread_time_ns()
    for _ in range(times):
        function(count)
    return time.thread_time_ns() - begin, time.perf_counter_ns() - started


def calls_spins(count, times):
    return spins(count, times)


def sees():
    # Until the tables of all that is called are there, and it is known which file has the interpreter.
    begin = time.thread_time_ns()
    while time.thread_time_ns() - begin < 1_000_000_000:
        sum(range(200))


sees()
print("spins", *calls_spins(20_000_000, 100))
