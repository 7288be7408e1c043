"""Asks a command for each file's size; the fix asks the system."""
import os
import subprocess
import sys


def size(path):
    if sys.argv[1] == "after":
        return os.stat(path).st_size
    return int(subprocess.run(["stat", "-c", "%s", path], stdout=subprocess.PIPE, check=True).stdout)  # SLOW


with open("data.bin", "wb") as file:
    file.write(b"x" * 1000)
print(sum(size("data.bin") for _ in range(700)), file=sys.stderr)
