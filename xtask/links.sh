#!/bin/sh
# Checks that the relative links of *.md and docs/**/*.md lead to files that exist. Names broken ones and exits with 1. Needs python3.
set -eu
cd "$(dirname "$0")/.."
exec python3 - <<'P'
import pathlib, re, sys, urllib.parse

FENCE = re.compile(r"^ {0,3}(`{3,}|~{3,})(.*)$")
CODE = re.compile(r"(?<!`)(`+)(?!`).*?(?<!`)\1(?!`)")
# [text](target), [text](<target> "title"), and [name]: target
LINKS = re.compile(r"""\]\(\s*(?:<([^<>]*)>|([^()\s]*(?:\([^()\s]*\)[^()\s]*)*))(?:\s+["'][^)]*)?\s*\)|^ {0,3}\[[^\]]+\]:\s*<?([^\s>]+)""")

def links(text):
    """Line numbers and targets, those in code left out."""
    fence = None
    for number, line in enumerate(text.splitlines(), 1):
        match = FENCE.match(line)
        if fence:
            if match and match[1].startswith(fence) and not match[2].strip():
                fence = None
            continue
        if match:
            fence = match[1]
            continue
        for link in LINKS.finditer(CODE.sub("", line)):
            yield number, link[1] or link[2] or link[3] or ""

files = sorted({*pathlib.Path(".").glob("*.md"), *pathlib.Path("docs").rglob("*.md")})
broken = checked = 0
for file in files:
    for number, target in links(file.read_text(encoding="utf-8")):
        if re.match(r"[A-Za-z][A-Za-z0-9+.-]*:|//|#", target):
            continue
        checked += 1
        path = urllib.parse.unquote(re.split("[?#]", target)[0])
        if not path or not (file.parent / path).exists():
            print(f"{file}:{number}: {target!r} leads to no file")
            broken += 1
print(f"{checked} relative links in {len(files)} files, {broken} broken", file=sys.stderr)
sys.exit(1 if broken else 0)
P
