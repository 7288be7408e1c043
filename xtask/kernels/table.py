#!/usr/bin/env python3
"""Makes one table of what check.sh printed on several kernels, and holds docs/kernels.md against it.

table.py [--update] DOCUMENT RESULT...     fails if a feature failed, a kernel did not come to its end, or the document says otherwise
"""
import os
import re
import sys

BEGIN, END = "<!-- results: make test-kernels UPDATE=1 -->", "<!-- end of results -->"


def read(path):
    """The series of a kernel with its processor, its release, and (feature, result, note) in their order."""
    with open(path, encoding="utf-8", errors="replace") as file:
        lines = file.read().splitlines()
    release, machine = next((line.split("\t")[1:3] for line in lines if line.startswith("KERNEL\t")), (None, None))
    rows = [line.split("\t")[1:4] for line in lines if line.startswith("RESULT\t") and line.count("\t") >= 3]
    if release is None or "END" not in lines:
        rows.append(["(the whole run)", "FAILED", f"it ended early: {path}"])
    series = ".".join((release or os.path.basename(path)).split(".")[:2])
    if machine == "aarch64":
        series += " arm64 16k" if release.endswith("16k") else " arm64"
    return series, release or "?", rows


def parse(text):
    """The table of the document: features in order, and {(feature, series): result}."""
    inside = text.split(BEGIN)[1].split(END)[0]
    rows = [[cell.strip() for cell in line.strip().removeprefix("|").removesuffix("|").split("|")] for line in inside.splitlines() if line.startswith("|")]
    if len(rows) < 2:
        return [], [], {}
    series = [re.sub(r"^Linux ", "", cell) for cell in rows[0][1:]]
    cells = {(row[0].strip("`"), name): cell for row in rows[2:] for name, cell in zip(series, row[1:])}
    return [row[0].strip("`") for row in rows[2:]], series, cells


def key(series):
    number, _, processor = series.partition(" ")
    return [processor, *(int(part) if part.isdigit() else 0 for part in number.split("."))]


def table(features, series, cells):
    lines = ["| | " + " | ".join(f"Linux {name}" for name in series) + " |", "|---" * (len(series) + 1) + "|"]
    for feature in features:
        lines.append(f"| `{feature}` | " + " | ".join(cells.get((feature, name), "") for name in series) + " |")
    return "\n".join(lines)


def main():
    arguments = sys.argv[1:]
    update = "--update" in arguments
    document, *paths = [word for word in arguments if word != "--update"]
    with open(document, encoding="utf-8") as file:
        text = file.read()
    old_features, old_series, old = parse(text)
    features, series, cells, failures, good = [], [], {}, [], 0
    for path in paths:
        name, release, rows = read(path)
        series.append(name)
        print(f"\nLinux {release}")
        for feature, result, note in rows:
            print(f"  {feature:38} {result:12} {note}")
            if feature not in features:
                features.append(feature)
            cells[feature, name] = result
            if result == "FAILED":
                failures.append(f"{feature} on Linux {release}: {note}")
            else:
                good += 1
    print("\n" + table(features, sorted(set(series), key=key), cells) + "\n")
    if update and not failures:
        every = sorted(set(series) | set(old_series), key=key)
        merged = {**{place: cell for place, cell in old.items() if place[0] in features}, **cells}
        head, rest = text.split(BEGIN)
        new = f"{head}{BEGIN}\n\n{table(features, every, merged)}\n\n{END}{rest.split(END)[1]}"
        with open(document, "w", encoding="utf-8") as file:
            file.write(new)
    elif not update:
        # A kernel that the document does not name, or a feature that could not be tried here, says nothing against it.
        for (feature, name), result in cells.items():
            told = old.get((feature, name))
            if name in old_series and told != result and "untried" not in (told, result) and result != "FAILED":
                failures.append(f"{document} says '{told}' of {feature} on Linux {name}, here it is '{result}': make test-kernels UPDATE=1")
    for failure in failures:
        print(f"FAILED: {failure}")
    print(f"kernels: {good} passed, {len(failures)} failed")
    return 1 if failures else 0


sys.exit(main())
