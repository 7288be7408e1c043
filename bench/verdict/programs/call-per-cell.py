"""Adds up a matrix by attribute and index look-ups of an object for each cell; the fix takes rows and sum()."""
import sys


class Matrix:
    def __init__(self, rows, columns):
        self.rows, self.columns = rows, columns
        self.cells = [[(r * c) % 97 for c in range(columns)] for r in range(rows)]

    def at(self, row, column):
        return self.cells[row][column]

    def total(self):
        if sys.argv[1] == "after":
            return sum(map(sum, self.cells))
        total = 0
        for row in range(self.rows):
            for column in range(self.columns):
                total += self.at(row, column)  # SLOW
        return total


matrix = Matrix(400, 400)
print(sum(matrix.total() for _ in range(90)), file=sys.stderr)
