"""The six workloads, and where they are built."""
import os
import sys
from pathlib import Path

HZ = 999
ROOT = Path(__file__).resolve().parents[2]
BIN = ROOT / "bench" / "bin"
PYTHON = "/usr/bin/python3" if os.path.exists("/usr/bin/python3") else sys.executable
WORKLOADS = {
    "recur": [str(BIN / "recur")],
    "gcc": ["gcc", "-O2", "-c", str(BIN / "big.ii"), "-o", "/dev/null"],
    "spawn": [str(BIN / "spawn.sh"), "3000"],
    "script": [PYTHON, str(BIN / "script.py")],
    "deep": [str(BIN / "deep")],
    "bigdbg": [str(BIN / "bigdbg")],
}
