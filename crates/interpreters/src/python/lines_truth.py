"""Prints tables of lines as this Python makes them, and the line of each instruction as PyCode_Addr2Line says it.

    for v in 3.9 3.10 3.11 3.12 3.13; do python$v lines_truth.py; done > lines_truth.txt

A line: the form of the table, the line that it counts from, its bytes, and LINExCOUNT for so many instructions of two bytes (- for none).
"""
import ctypes
import sys

line_of = ctypes.pythonapi.PyCode_Addr2Line
line_of.argtypes = [ctypes.py_object, ctypes.c_int]
line_of.restype = ctypes.c_int

# Lines that go back, that are far apart, code that is long, a handler that is put behind, and what has no line.
FAR = "\n" * 300
LONG = "+".join(["x"] * 200)
SOURCES = [
    "x = 1\ny = 2\n",
    "x = (1,\n\n 2,\n [i for i in\n  y])\n",
    "def f(x):\n if x:" + FAR + "  return x\n return -x\n",
    "def f(x):\n return (" + LONG + "\n  +" + FAR + "x)\n",
    "def f(x):\n try:\n  with x as y:\n   yield y\n except ValueError as e:\n  print(e)\n finally:\n  print(x)\n",
    "async def f(x):\n async for y in x:\n  await y\n return [await z async for z in x]\n",
    "class C:\n \n def f(self): return 1\n g = lambda self: (\n  self)\n",
    "def f(x):\n for i in x:\n  if i: continue\n  while i:\n   break\n else:\n  pass\n assert x, (\n 'no')\n",
]


def codes(code):
    yield code
    for constant in code.co_consts:
        if hasattr(constant, "co_code"):
            yield from codes(constant)


def form():
    if sys.version_info < (3, 10):
        return "lnotab", lambda code: code.co_lnotab
    kind = "ranges" if sys.version_info < (3, 11) else "locations"
    return kind, lambda code: code.co_linetable


kind, table = form()
for source in SOURCES:
    for code in codes(compile(source, "x.py", "exec")):
        runs = []
        for at in range(0, len(code.co_code), 2):
            line = line_of(code, at)
            if runs and runs[-1][0] == line:
                runs[-1][1] += 1
            else:
                runs.append([line, 1])
        said = " ".join(f"{'-' if line < 0 else line}x{count}" for line, count in runs)
        print(kind, code.co_firstlineno, table(code).hex() or "-", said)
