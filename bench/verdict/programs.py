"""The programs of the table (programs.toml): how each is built and run.

Sources, binaries and folders have names that say nothing (app.c, a hash), so that no word of a report comes from them. What is built is
kept under a hash of the source and the way to build it. Nothing here measures or judges.
"""
import hashlib
import os
import shutil
import subprocess
import sys
import tomllib
from dataclasses import dataclass, field
from pathlib import Path

HERE = Path(__file__).parent
ROOT = HERE.parents[1]
WORK = ROOT / "target" / "verdict"
SCRATCH = WORK / "scratch"
LANGUAGES = {".c": "C", ".cpp": "C++", ".py": "Python", ".go": "Go", ".rs": "Rust", ".sh": "shell", ".js": "Node", ".java": "Java"}
# Longer than any program or report takes, also on a busy machine; seconds.
LIMIT = 180


@dataclass
class Program:
    """One line of the table."""

    name: str
    cause: str = ""
    also: list = field(default_factory=list)
    parts: list = field(default_factory=list)
    half: str = ""
    wrong: str = ""
    function: str = ""
    gains: str = "cpu"
    fix: str = ""
    flags: list = field(default_factory=list)
    flags_before: list = field(default_factory=list)
    flags_after: list = field(default_factory=list)
    libraries: list = field(default_factory=list)
    shared: bool = False
    requires: str = ""

    @property
    def is_clean(self):
        """Whether nothing is to be fixed, so that no cause may be named."""
        return not self.cause

    @property
    def path(self):
        return HERE / "programs" / self.name

    @property
    def extension(self):
        return self.path.suffix

    @property
    def language(self):
        return LANGUAGES[self.extension]

    @property
    def digest(self):
        """What the measurement depends on, apart from the machine."""
        parts = [self.path.read_text(), self.flags, self.flags_before, self.flags_after, self.libraries, self.shared]
        return hashlib.sha256(repr(parts).encode()).hexdigest()[:16]

    def slow_lines(self):
        """Numbers of the lines that are marked SLOW in the source."""
        return [number for number, line in enumerate(self.path.read_text().splitlines(), 1) if "SLOW" in line]


def load():
    """The programs and the words by which each cause is known in a text."""
    table = tomllib.loads((HERE / "programs.toml").read_text())
    programs = [Program(name=name, **entry) for name, entry in table["program"].items()]
    sources = {str(path.relative_to(HERE / "programs")) for path in (HERE / "programs").rglob("*.*")}
    if strangers := sources ^ {program.name for program in programs}:
        sys.exit(f"in the table or in programs/, but not in both: {', '.join(sorted(strangers))}")
    unknown = {program.cause for program in programs if program.cause} - set(table["cause"])
    if unknown:
        sys.exit(f"programs.toml: causes without words: {', '.join(sorted(unknown))}")
    return programs, table["cause"]


def missing(program, python):
    """Why the program can't run here, or nothing."""
    tool = {".go": "go", ".rs": "rustc", ".js": "node", ".java": "javac"}.get(program.extension)
    if tool and not shutil.which(tool):
        return f"{tool} is not installed"
    if program.requires and subprocess.run([python, "-c", f"import {program.requires}"], capture_output=True, check=False).returncode:
        return f"{python} has no {program.requires}"
    return ""


def build(program, variant):
    """Builds one variant ("before" or "after") unless that was done, and returns the folder that holds it."""
    folder = WORK / "build" / program.digest / variant
    done = folder / ".built"
    if done.exists():
        return folder
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    source = folder / ("App.java" if program.extension == ".java" else f"app{program.extension}")
    shutil.copyfile(program.path, source)
    for command in compile_commands(program, variant, source.name):
        finished = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)
        if finished.returncode:
            sys.exit(f"cannot build {program.name} ({variant}): {' '.join(command)}\n{finished.stderr}")
    done.touch()
    return folder


def compile_commands(program, variant, source):
    after = variant == "after"
    own = program.flags + (program.flags_after if after else program.flags_before)
    if program.extension in (".c", ".cpp"):
        compiler = ["cc"] if program.extension == ".c" else ["c++", "-std=c++17"]
        compiler += ["-O2", "-g", "-pthread", *own, *(["-DAFTER"] if after else [])]
        if program.shared and not after:
            yield [*compiler, "-DLIBRARY", "-fPIC", "-shared", source, "-o", "libplugins.so"]
            yield [*compiler, source, "-o", "app", "-L.", "-lplugins", "-Wl,-rpath,$ORIGIN"]
        else:
            yield [*compiler, source, "-o", "app", *program.libraries]
    elif program.extension == ".rs":
        yield ["rustc", "--edition", "2021", "-A", "unexpected_cfgs", "-g", *(own or ["-O"]), *(["--cfg", "after"] if after else []), source, "-o", "app"]
    elif program.extension == ".go":
        yield ["go", "build", "-o", "app", source]
    elif program.extension == ".java":
        yield ["javac", "-g", source]


def command(program, variant, python):
    """The command to run in the scratch folder."""
    start = {".py": [python, "app.py"], ".sh": ["bash", "app.sh"], ".js": ["node", "app.js"], ".java": ["java", "-cp", ".", "App"]}
    if program.extension in start:
        return [*start[program.extension], variant]
    return ["./app", variant] if program.extension == ".go" else ["./app"]


def fresh_scratch(folder):
    """Empties the scratch folder and puts the built program there."""
    shutil.rmtree(SCRATCH, ignore_errors=True)
    shutil.copytree(folder, SCRATCH, ignore=shutil.ignore_patterns(".built"))


def raised():
    """Called in the child: lets root's measurements run ahead of what else keeps the machine busy."""
    os.setsid()
    if os.geteuid() == 0:
        os.setpriority(os.PRIO_PROCESS, 0, -20)
        try:
            Path("/proc/self/autogroup").write_text("-20")
        except OSError:
            pass  # Without automatic groups the priority is enough.
