"""Flushes its output after each line; the fix leaves that to the buffer."""
import sys


def export(file, rows):
    for row in range(rows):
        print(row, row * 7, file=file, flush=sys.argv[1] == "before")  # SLOW


with open("rows.txt", "w", encoding="utf-8") as file:
    export(file, 500000)
print("done", file=sys.stderr)
