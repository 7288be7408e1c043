"""Appends to a text that two names hold, so that it is copied each time; the fix collects pieces and joins them."""
import sys


class Report:
    def __init__(self):
        self.text = ""
        self.pieces = []
        self.shown = ""

    def add(self, line):
        if sys.argv[1] == "after":
            self.pieces.append(line)
            return
        self.text = self.text + line  # SLOW
        self.shown = self.text

    def finish(self):
        return self.text or "".join(self.pieces)


size = 0
for report_number in range(2):
    report = Report()
    for number in range(16000):
        report.add(f"line {number} of the report\n")
    size += len(report.finish())
print(size, file=sys.stderr)
