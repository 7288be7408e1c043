"""Evaluates arithmetic expressions by recursive descent: an interpreter's ordinary work, nothing to mend."""
import re
import sys

TOKEN = re.compile(r"\s*(\d+|[-+*()])")


class Parser:
    def __init__(self, text):
        self.tokens = TOKEN.findall(text)
        self.at = 0

    def peek(self):
        return self.tokens[self.at] if self.at < len(self.tokens) else ""

    def take(self):
        self.at += 1
        return self.tokens[self.at - 1]

    def atom(self):
        token = self.take()
        if token == "(":
            value = self.sum()
            self.take()
            return value
        return int(token)

    def product(self):
        value = self.atom()
        while self.peek() == "*":
            self.take()
            value = value * self.atom() % 1000003
        return value

    def sum(self):
        value = self.product()
        while self.peek() in ("+", "-"):
            if self.take() == "+":
                value += self.product()
            else:
                value -= self.product()
        return value


def main():
    total = 0
    for number in range(90000):
        text = f"({number} + 3) * {number % 17} - 4 * (2 + {number % 5} * (7 - {number % 3})) + {number} * 2"
        total += Parser(text).sum()
    print(total, file=sys.stderr)


main()
