"""Writes a log whose function opens the file for each line; the fix keeps it open."""
import sys

AFTER = sys.argv[1] == "after"
LOG = open("log.txt", "a") if AFTER else None


def log(level, message):
    line = f"{level:8} {message}\n"
    if AFTER:
        LOG.write(line)
        return
    with open("log.txt", "a") as file:  # SLOW
        file.write(line)


def settle(accounts, source, target, amount):
    if accounts[source] < amount:
        log("refused", f"{source} -> {target}: {amount}")
        return
    accounts[source] -= amount
    accounts[target] += amount
    log("info", f"{source} -> {target}: {amount}")


def main():
    accounts = [1000] * 50
    state = 7
    for _ in range(60000):
        state = (state * 1103515245 + 12345) % 2**31
        settle(accounts, state % 50, state // 50 % 50, state // 2500 % 90)
    print(sum(a * i for i, a in enumerate(accounts)), file=sys.stderr)


main()
