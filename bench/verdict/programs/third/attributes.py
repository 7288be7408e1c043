"""Reads settings through an object that hands on each name; the fix reads them once, before the loop."""
import sys

AFTER = sys.argv[1] == "after"


class Settings:
    def __init__(self, values):
        self.values = values

    def __getattr__(self, name):
        return self.values[name]


class Shop:
    def __init__(self, settings):
        self.settings = settings


def total(shop, prices):
    if AFTER:
        tax, discount, limit = shop.settings.tax, shop.settings.discount, shop.settings.limit
        return sum(price * tax - discount for price in prices if price < limit)
    amount = 0.0
    for price in prices:
        if price < shop.settings.limit:  # SLOW
            amount += price * shop.settings.tax - shop.settings.discount
    return amount


shop = Shop(Settings({"tax": 1.19, "discount": 0.5, "limit": 900.0}))
print(total(shop, [number % 1000 * 0.99 for number in range(2_500_000)]), file=sys.stderr)
