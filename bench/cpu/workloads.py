"""The six workloads, and where they are built. They are made to last some 5 to 10 seconds of processor time: what a
recorder does once per recording weighs as much as it would in practice."""
import os
import sys
from pathlib import Path

HZ = 999
ROOT = Path(__file__).resolve().parents[2]
BIN = ROOT / "bench" / "bin"
PYTHON = "/usr/bin/python3" if os.path.exists("/usr/bin/python3") else sys.executable
WORKLOADS = {
    "recur": [str(BIN / "recur"), "1200"],
    "gcc": ["gcc", "-O2", "-c", str(BIN / "big.ii"), "-o", "/dev/null"],
    "spawn": [str(BIN / "spawn.sh"), "3000"],
    "script": [PYTHON, str(BIN / "script.py"), "2000"],
    "deep": [str(BIN / "deep"), "4000"],
    "bigdbg": [str(BIN / "bigdbg"), "700"],
}
