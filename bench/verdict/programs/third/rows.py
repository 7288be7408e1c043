"""Sums up a table row by row; the fix computes with its columns."""
import sys

import pandas


def revenue(orders):
    if sys.argv[1:] == ["after"]:
        return (orders["price"] * orders["count"])[orders["paid"]].sum()
    total = 0.0
    for _, order in orders.iterrows():  # SLOW
        if order["paid"]:
            total += order["price"] * order["count"]
    return total


COUNT = 100_000
table = pandas.DataFrame({"price": [1.5] * COUNT, "count": [2] * COUNT, "paid": [True, False] * (COUNT // 2)})
print(revenue(table), file=sys.stderr)
