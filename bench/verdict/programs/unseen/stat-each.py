"""Asks for the configuration's time of change at each request; the fix asks once a thousand."""
import os
import sys

loaded = {}


def settings(number):
    if sys.argv[1] == "after" and number % 1000 and loaded:
        return loaded
    changed = os.stat("app.conf").st_mtime  # SLOW
    if loaded.get("changed") != changed:
        loaded["changed"] = changed
    return loaded


with open("app.conf", "w") as file:
    file.write("a = 1\n")
total = 0
for number in range(500000):
    total += len(settings(number)) + number % 3
print(total, file=sys.stderr)
