"""What `plumb explain` says of a program, and whether that is right.

A headline is the part of the report before its first section. It names a cause where the words of the cause are in it. The leading cause is
also taken from the JSON report: a name of a rule that is not among those that are true of the program is a false cause. Predictions are
intervals; "at most" is an interval from 0. Nothing here runs a program without plumb.
"""
import json
import re
import statistics
import subprocess
import sys
import time
from dataclasses import dataclass, field

import programs

RIGHT, HALF, NONE, FALSE = "right", "half", "not named", "FALSE"
# A prediction is held to be right within this many points, or within half of the range of the pairs where that is more: about two
# standard errors of a median of five.
TOLERANCE = 1.0
# Kinds of leading rows that are places and not causes.
PLACES = {"function", "kernel", "file", "library", "row", "line", "nameless"}
# Lines of a headline that say what the cause is not.
EXCLUDED = re.compile(r"^\s*(not it|ruled out|sure|confidence|next\s{2,}|next command)\b", re.IGNORECASE)
SECTION = re.compile(r"^(\d+\. \S|#+ |\s*evidence\b)", re.IGNORECASE)


@dataclass
class Verdict:
    """What was said of one program."""

    outcome: str = NONE
    headline: str = ""
    leading: str = ""
    is_cause: bool = False
    place: str = ""
    cpu: tuple = None
    wall: tuple = None
    listed_false: list = field(default_factory=list)
    lines: int = 0
    samples: int = 0
    milliseconds: float = 0.0
    failed: str = ""


def explain(program, arguments, plumb, python, *, fresh=True):
    """Runs `plumb explain` in the scratch folder; returns what it printed."""
    if fresh:
        programs.fresh_scratch(programs.build(program, "before"))
    done = subprocess.run(
        [plumb, "explain", *arguments], cwd=programs.SCRATCH, capture_output=True, text=True, errors="replace", stdin=subprocess.DEVNULL,
        preexec_fn=programs.raised, timeout=programs.LIMIT, check=False,
    )
    if done.returncode:
        raise RuntimeError(f"plumb explain ended with {done.returncode}: {done.stderr.strip()[-200:]}")
    return done.stdout


def headline_of(report, command):
    """The report's lines before its first section, as one line, without the command and what is ruled out."""
    kept = []
    for line in report.splitlines():
        if SECTION.match(line) or len(kept) == 12:
            break
        if line.strip() and not EXCLUDED.match(line):
            kept.append(line.strip())
    return " ".join(kept).replace(" ".join(command), "COMMAND")


def leading_of(report):
    """The row that the verdict puts first: its kind, its name and itself."""
    verdict = report["verdict"]
    first = verdict.get("cause") or verdict.get("largest") or {}
    if isinstance(first, str):
        first = {"rule": first}
    return first.get("kind", "cause"), first.get("rule") or first.get("name") or "", first


def causes_in(report):
    """Every cause that the report lists: entries with the name of a rule, wherever they are."""
    found = []

    def visit(value):
        if isinstance(value, dict):
            if isinstance(value.get("rule"), str):
                found.append(value)
            for one in value.values():
                visit(one)
        elif isinstance(value, list):
            for one in value:
                visit(one)

    visit(report)
    return found


def interval(gain, *names):
    """The bounds of a gain in percent: {"cpu": {"low", "high"}}, {"cpu_percent": {…}}, or a bare number, which is an upper bound."""
    for name in names:
        for key in (name, f"{name}_percent"):
            bounds = gain.get(key)
            if isinstance(bounds, dict) and bounds.get("high") is not None:
                return float(bounds.get("low") or 0), float(bounds["high"])
            if isinstance(bounds, (int, float)):
                return 0.0, float(bounds)
        if gain.get(f"{name}_high") is not None:
            return float(gain.get(f"{name}_low") or 0), float(gain[f"{name}_high"])
    return None


def prediction_of(row):
    """Predicted gains of a row of the report: of processor time and of elapsed time."""
    gain = row.get("gain") or row.get("gain_at_most") or {}
    return interval(gain, "cpu"), interval(gain, "wall", "elapsed")


def place_of(program, report, headline):
    """Where the user's line or function is named: in the headline, on the first 40 lines, below, or nowhere."""
    marks = "|".join(str(number + off) for number in program.slow_lines() for off in (-1, 0, 1))
    line = re.compile(rf"\b[Aa]pp\.\w+:({marks})\b")
    function = re.compile(rf"(?<![\w.-])({program.function})\b(?!-)")
    first = "\n".join(report.splitlines()[:40])
    for where, text in (("headline", headline), ("40 lines", first), ("below", report)):
        found = [name for name, pattern in (("line", line), ("function", function)) if pattern.search(text)]
        if found:
            return f"{where}: {found[0]}"
    return "no"


def outcome_of(program, causes, headline, kind, leading, listed):
    """Whether the cause is named, and whether a false one is."""
    accepted = {program.cause, *program.also}
    whole = headline

    def named(names):
        return any(re.search(causes[name]["words"], headline, re.IGNORECASE) for name in names if name in causes) or any(name in headline for name in names)

    is_rule = bool(leading) and kind not in PLACES
    if not is_rule and leading:
        # Names of a function and its file may have the words, but say no cause.
        headline = re.sub(r"\([^()\s]+:\d+\)", "", headline.replace(leading, ""))
    if program.is_clean:
        # That a program sorts is true of one that has to; that this is why it is slow would not be.
        return FALSE if is_rule and kind != "activity" else RIGHT
    if program.wrong and re.search(program.wrong, headline, re.IGNORECASE):
        return FALSE
    if is_rule and leading not in accepted:
        return HALF if leading in program.parts or named([program.cause]) else FALSE
    if named([program.cause]) or is_rule:
        return RIGHT
    if any(one["rule"] in accepted for one in listed):
        return HALF
    if program.half and re.search(program.half, whole, re.IGNORECASE):
        return HALF
    return NONE


def judge(program, causes, plumb, python, *, live):
    """Has plumb explain the variant before the fix, as text and as JSON, and judges both; live: each from a run of its own."""
    command = programs.command(program, "before", python)
    verdict = Verdict()
    try:
        text = explain(program, ["-o", "taken.plumb", "--", *command], plumb, python)
        source = ["-o", "taken.plumb", "--", *command] if live else ["taken.plumb"]
        report = json.loads(explain(program, ["--json", *source], plumb, python, fresh=live))
        verdict.milliseconds = timed(program, plumb, python)
    except (RuntimeError, ValueError, KeyError, subprocess.TimeoutExpired) as error:
        verdict.failed = str(error)[:300]
        return verdict
    listed = causes_in(report)
    kind, verdict.leading, row = leading_of(report)
    verdict.is_cause = bool(verdict.leading) and kind not in PLACES
    verdict.headline = headline_of(text, command)
    verdict.outcome = outcome_of(program, causes, verdict.headline, kind, verdict.leading, listed)
    verdict.place = "" if program.is_clean else place_of(program, text, verdict.headline)
    verdict.cpu, verdict.wall = prediction_of(row)
    accepted = {program.cause, *program.also, *program.parts}
    verdict.listed_false = sorted({one["rule"] for one in listed} - accepted)
    verdict.lines = len(text.splitlines())
    verdict.samples = (report.get("quality") or {}).get("samples") or 0
    return verdict


def timed(program, plumb, python):
    """Elapsed time of the report on its recording: the median of three, in milliseconds."""
    times = []
    for _ in range(3):
        began = time.monotonic()
        explain(program, ["taken.plumb"], plumb, python, fresh=False)
        times.append((time.monotonic() - began) * 1e3)
    return round(statistics.median(times), 1)


def within(bounds, gain):
    """Whether the measured median is in the predicted interval, as far as it is known."""
    tolerance = max(TOLERANCE, (gain["max"] - gain["min"]) / 2)
    return bounds[0] - tolerance <= gain["median"] <= bounds[1] + tolerance


if __name__ == "__main__":
    sys.exit("run.py is the command")
