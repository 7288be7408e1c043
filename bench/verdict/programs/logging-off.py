"""Builds the text of a log line whose level is off; the fix leaves that to the logger."""
import logging
import sys

log = logging.getLogger("app")
logging.basicConfig(level=logging.WARNING)


def handle(order):
    if sys.argv[1] == "after":
        log.debug("order %r", order)
    else:
        log.debug(f"order {order!r}")  # SLOW
    return order["amount"]


order = {"id": 7, "amount": 3, "lines": list(range(30)), "name": "somebody", "address": ("street", 12, "town")}
total = 0
for _ in range(300000):
    total += handle(order)
print(total, file=sys.stderr)
