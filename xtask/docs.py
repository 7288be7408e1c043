#!/usr/bin/env python3
"""Runs the commands that README.md and docs/ show, and checks that the book's summary and the options that prose names are true.

    docs.py [-v] [PAGE...]        without a PAGE: README.md and all pages in docs/

PLUMB is the binary to run (target/debug/plumb). Each page is run in a scratch folder of its own, top to bottom, by one shell:
  - lines of ```console blocks that begin with `$ `, and lines of ```sh blocks that begin with `plumb ` or `sudo plumb `; sudo is left out,
    as this runs as root. Each has to succeed, unless `$ echo $?` follows, which has to print what the page shows.
Comments in a page, on the line before a block or anywhere (what mdBook and GitHub show has none of them):
  <!-- file: NAME -->           the block below is written to NAME before anything runs
  <!-- files of: PAGE -->       the files of another page are written too
  <!-- setup: COMMAND -->       run before the page's commands; `$repository` is the repository
  <!-- cleanup: COMMAND -->     run after them
  <!-- not run: REASON -->      the block below is not run
Commands in prose (`plumb report --tree`) are not run: their subcommands and options have to be in --help.
"""
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parent.parent
COMMENT = re.compile(r"^\s*<!-- (file|files of|setup|cleanup|not run): (.*?) -->\s*$")
FENCE = re.compile(r"^```(\w*)\s*$")
# A page takes seconds; a command that hangs is to be named.
SECONDS = 300


class Page:
    """The blocks of a page that matter here."""

    def __init__(self, path):
        self.path, self.files, self.setup, self.cleanup = path, {}, [], []
        self.commands, self.not_run, self.prose = [], [], []
        kind = file = reason = None
        block = []
        for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), 1):
            fence, comment = FENCE.match(line), COMMENT.match(line)
            if kind is not None:
                if fence:
                    self.end(kind, block, file, reason)
                    kind = file = reason = None
                else:
                    block.append((number, line))
            elif fence:
                kind, block = fence[1], []
            elif comment and comment[1] == "file":
                file = comment[2]
            elif comment and comment[1] == "files of":
                self.files.update(Page(path.parent / comment[2]).files)
            elif comment and comment[1] == "setup":
                self.setup.append(comment[2])
            elif comment and comment[1] == "cleanup":
                self.cleanup.append(comment[2])
            elif comment:
                reason = comment[2]
            else:
                self.prose.append((number, line))

    def end(self, kind, block, file, reason):
        """Takes a block: a file to write, or the commands in it with the output that the page shows."""
        if file:
            self.files[file] = "".join(line + "\n" for _, line in block)
        elif reason:
            self.not_run.append((block[0][0], reason))
        elif kind == "console":
            for number, line in block:
                if line.startswith("$ "):
                    self.commands.append([number, line[2:], []])
                elif self.commands:
                    self.commands[-1][2].append(line)
        elif kind == "sh":
            for number, line in block:
                if re.match(r"(sudo )?plumb ", line):
                    self.commands.append([number, line, []])


def script(page):
    """A shell script that runs the page's commands and says which of them fails."""
    lines = ["set -u", f"repository={ROOT}", "failed() { echo \"$1: exits with $2\" >&4; }"]
    for command in page.setup:
        lines.append(f"{{ {command}\n}} || {{ echo 'setup fails: {command.replace(chr(39), '')}' >&4; exit 1; }}")
    for index, (number, command, shown) in enumerate(page.commands):
        command = re.sub(r"^sudo ", "", command)
        lines.append(f"echo '+ {page.path.name}:{number}' >&2")
        if command == "echo $?":
            status = shown[0].strip() if shown else ""
            lines.append(f'[ "$status" = "{status}" ] || echo "{number}: the status is $status, not {status}" >&4')
            continue
        is_asked = index + 1 < len(page.commands) and page.commands[index + 1][1] == "echo $?"
        lines.append(f"status=0; ( {command}\n) </dev/null || status=$?")
        if not is_asked:
            lines.append(f'[ $status = 0 ] || failed {number} $status')
    return "\n".join([f"trap '{'; '.join(page.cleanup)}' EXIT", *lines]) + "\n"


def run(page, plumb, verbose):
    """What went wrong, by line."""
    if not page.commands:
        return []
    with tempfile.TemporaryDirectory(prefix="plumb-docs-") as folder:
        for name, text in page.files.items():
            pathlib.Path(folder, name).write_text(text, encoding="utf-8")
        tools = pathlib.Path(folder, ".bin")
        tools.mkdir()
        (tools / "plumb").symlink_to(plumb)
        environment = dict(os.environ, PATH=f"{tools}:{os.environ['PATH']}", PAGER="", NO_COLOR="1")
        log = pathlib.Path(folder, ".log")
        with open(log, "wb") as out, open(pathlib.Path(folder, ".wrong"), "wb") as wrong:
            # Descriptor 4 takes what is wrong, apart from what commands print.
            shell = ["bash", "-c", f"exec 4>&{wrong.fileno()}; " + script(page)]
            try:
                status = subprocess.run(
                    shell, cwd=folder, env=environment, stdout=out, stderr=out, pass_fds=[wrong.fileno()], timeout=SECONDS
                ).returncode
            except subprocess.TimeoutExpired:
                status = f"none after {SECONDS} s"
        errors = pathlib.Path(folder, ".wrong").read_text(encoding="utf-8").splitlines()
        # The last command's own status is among the errors already.
        if not errors and isinstance(status, str):
            errors.append(f"the page's commands did not end: {status}")
        if errors or verbose:
            print(log.read_text(encoding="utf-8", errors="replace"))
        return errors


def helps(plumb):
    """A function from a subcommand's words to its --help, or None."""
    known = {}

    def help_of(words):
        if words not in known:
            done = subprocess.run([plumb, *words, "--help"], capture_output=True, text=True, stdin=subprocess.DEVNULL)
            known[words] = done.stdout if done.returncode == 0 else None
        return known[words]

    return help_of


def check_prose(page, help_of):
    """Subcommands and options that `plumb ...` in the text names and that there are not."""
    errors = []
    for number, line in page.prose:
        for code in re.findall(r"`(?:sudo )?plumb ([^`]*)`", line):
            words = code.split(" -- ")[0].split()
            if not words or not re.fullmatch(r"[a-z]+", words[0]):
                continue
            text = help_of((words[0],))
            if text is None:
                errors.append(f"{number}: there is no plumb {words[0]}")
                continue
            if len(words) > 1 and words[0] in ("bench", "generate"):
                text += help_of(tuple(words[:2])) or ""
            for option in re.findall(r"(?<![\w-])--[a-z][a-z-]+", " ".join(words)):
                if not re.search(re.escape(option) + r"(?![a-z-])", text):
                    errors.append(f"{number}: plumb {words[0]} has no {option}")
    return errors


def check_summary():
    """Pages that the book's summary does not name, or names in vain."""
    docs = ROOT / "docs"
    named = re.findall(r"^\s*- \[[^\]]+\]\(([^)]+)\)", (docs / "SUMMARY.md").read_text(encoding="utf-8"), re.M)
    pages = {str(page.relative_to(docs)) for page in docs.rglob("*.md")} - {"SUMMARY.md"}
    errors = [f"docs/SUMMARY.md: {name} is not there" for name in named if name not in pages]
    errors += [f"docs/SUMMARY.md: {page} is missing" for page in sorted(pages - set(named))]
    errors += [f"docs/SUMMARY.md: {name} is named twice" for name in sorted(set(named)) if named.count(name) > 1]
    if shutil.which("mdbook"):
        with tempfile.TemporaryDirectory(prefix="plumb-book-") as folder:
            built = subprocess.run(["mdbook", "build", "-d", folder, str(docs)], capture_output=True, text=True)
            if built.returncode:
                errors.append(f"mdbook: {built.stderr.strip()}")
    return errors


def main():
    arguments = [argument for argument in sys.argv[1:] if argument != "-v"]
    target = os.environ.get("CARGO_TARGET_DIR", ROOT / "target")
    plumb = os.environ.get("PLUMB", str(pathlib.Path(target, "debug", "plumb")))
    paths = [pathlib.Path(argument).resolve() for argument in arguments]
    paths = paths or [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]
    help_of = helps(plumb)
    wrong = [] if arguments else check_summary()
    count = left_out = 0
    for path in paths:
        page = Page(path)
        name = path.relative_to(ROOT)
        count += len(page.commands)
        for number, reason in page.not_run:
            left_out += 1
            print(f"{name}:{number}: not run: {reason}")
        errors = check_prose(page, help_of) + run(page, plumb, "-v" in sys.argv)
        wrong += [f"{name}:{error}" for error in errors]
    for error in wrong:
        print(error)
    print(f"{count} commands of {len(paths)} pages, {left_out} blocks not run, {len(wrong)} wrong")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
