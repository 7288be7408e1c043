#!/usr/bin/env python3
"""Memory of `plumb record -a` and `plumb top -a --batch`, both at once, while programs come and go. Prints Markdown.

    bench/memory/run.py [--minutes 30] [--plumb target/release/plumb] [--max-memory 256M] [--folder FOLDER] [--nice 19]

The churn, as far as it is installed: g++ on bench/cpu/big.cpp, rustc with optimisation, short processes (a shell loop), python, ffmpeg,
postgres with pgbench. Needs root. Each second it reads VmRSS, VmHWM and the kinds of resident memory of both from /proc; the most
of each is shown. Resident memory includes mapped BPF tables, which have a column of their own; rings of events and other BPF maps
are the kernel's memory and in no process' account: what of them the kernel says (memlock of BPF maps in fdinfo, sizes of mappings
of perf events) is shown apart. Ends with exit status 1 if a bound was exceeded or a sample was lost."""
import argparse
import json
import os
import platform
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
BIG = ROOT / "bench" / "cpu" / "big.cpp"
RUST = """
use std::collections::{BTreeMap, HashMap};
#[derive(Debug, Clone, PartialEq, PartialOrd)] pub enum Value { Nothing, Number(f64), Text(String), List(Vec<Value>), Map(BTreeMap<String, Value>) }
pub fn count(words: &str) -> HashMap<String, Vec<usize>> {
    let mut all: HashMap<String, Vec<usize>> = HashMap::new();
    for (at, word) in words.split_whitespace().enumerate() { all.entry(word.to_lowercase()).or_default().push(at); }
    all
}
pub fn main() {
    let mut map = BTreeMap::new();
    for (word, places) in count(&std::env::args().collect::<Vec<_>>().join(" ")) {
        map.insert(word, Value::List(places.into_iter().map(|at| Value::Number(at as f64)).collect()));
    }
    println!("{:?}", Value::Map(map));
}
"""
PYTHON = "import json, re\nfor i in range(30000):\n    json.loads(json.dumps({'n': [i] * 20, 't': re.sub('a+', str(i), 'banana' * 9)}))\n"


def churn(folder):
    """Shell loops, each of which runs until it is killed."""
    (folder / "churn.rs").write_text(RUST)
    (folder / "churn.py").write_text(PYTHON)
    loops = {"short": "for i in 1 2 3 4 5 6 7 8 9; do /bin/true; ls / >/dev/null; date | cat >/dev/null; done; sleep 0.1"}
    if shutil.which("g++"):
        loops["g++"] = f"g++ -std=c++17 -O2 -w -c {BIG} -o {folder}/big.o"
    if shutil.which("rustc"):
        loops["rustc"] = f"rustc -O --crate-name churn -o {folder}/churn {folder}/churn.rs"
    if shutil.which("python3"):
        loops["python"] = f"python3 {folder}/churn.py"
    if shutil.which("ffmpeg"):
        loops["ffmpeg"] = "ffmpeg -v error -f lavfi -i testsrc=size=640x360:rate=30 -t 5 -c:v libx264 -f null -"
    return {name: f"while :; do {body}; done" for name, body in loops.items()}


class Postgres:
    """A server with pgbench beside, if both are installed."""

    def __init__(self, folder):
        self.folder, self.bench = folder / "pg", None
        tools = sorted(Path("/usr/lib/postgresql").glob("*/bin/initdb"))
        if not tools or not shutil.which("runuser"):
            return
        tools = tools[-1].parent
        self.tools = tools
        if not (tools / "pgbench").exists():
            return
        self.folder.mkdir()
        shutil.chown(self.folder, "postgres")
        os.chmod(folder, 0o755)
        run = lambda *words: subprocess.run(["runuser", "-u", "postgres", "--", *map(str, words)], stdout=subprocess.DEVNULL,
                                            stderr=subprocess.DEVNULL, check=False).returncode == 0
        self.run = run
        data = self.folder / "data"
        is_up = run(tools / "initdb", "-D", data) and run(tools / "pg_ctl", "-D", data, "-w", "-o",
                                                          f"-p 54329 -k {self.folder} -c listen_addresses=", "-l", self.folder / "log", "start")
        if is_up and run(tools / "pgbench", "-h", self.folder, "-p", "54329", "-i", "-s", "5", "postgres"):
            self.bench = subprocess.Popen(["runuser", "-u", "postgres", "--", str(tools / "pgbench"), "-h", str(self.folder), "-p", "54329", "-c", "2",
                                           "-T", "999999", "postgres"], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, start_new_session=True)

    def stop(self):
        if self.bench:
            os.killpg(self.bench.pid, signal.SIGTERM)
            self.run(self.tools / "pg_ctl", "-D", self.folder / "data", "-m", "immediate", "stop")


def kinds(pid):
    """Kilobytes by kind."""
    found = {}
    for line in Path(f"/proc/{pid}/status").read_text().splitlines():
        if match := re.match(r"(VmRSS|VmHWM|RssAnon|RssFile|RssShmem):\s+(\d+) kB", line):
            found[match[1]] = int(match[2])
    return found


def kernel_memory(pid):
    """What the kernel keeps for a process: BPF maps (memlock), rings of perf events, and the BPF maps that it has mapped and resident."""
    maps = 0
    for entry in Path(f"/proc/{pid}/fdinfo").iterdir():
        try:
            text = entry.read_text()
        except OSError:
            continue
        if "map_type" in text and (match := re.search(r"memlock:\s+(\d+)", text)):
            maps += int(match[1])
    rings = resident = 0
    name = ""
    for line in Path(f"/proc/{pid}/smaps").read_text().splitlines():
        if match := re.match(r"([0-9a-f]+)-([0-9a-f]+) \S+ \S+ \S+ \S+\s*(.*)", line):
            name = match[3]
            rings += (int(match[2], 16) - int(match[1], 16)) if "perf_event" in name else 0
        elif "bpf-map" in name and (match := re.match(r"Rss:\s+(\d+) kB", line)):
            resident += int(match[1]) << 10
    return maps, rings, resident


class Watched:
    """A recorder and the most memory that it had."""

    def __init__(self, name, command, out, err):
        self.name, self.most, self.kernel, self.series = name, {}, (0, 0, 0), []
        self.child = subprocess.Popen(command, stdout=out, stderr=err, start_new_session=True)

    def look(self, second):
        try:
            now = kinds(self.child.pid)
            if second % 10 == 0:
                self.kernel = tuple(map(max, self.kernel, kernel_memory(self.child.pid)))
        except OSError:
            return
        for kind, size in now.items():
            self.most[kind] = max(self.most.get(kind, 0), size)
        if second % 60 == 0 and "VmRSS" in now:
            self.series.append(now["VmRSS"] >> 10)


def size(text):
    number, unit = re.fullmatch(r"(\d+)([KMG]?)i?B?", text).groups()
    return int(number) << {"": 0, "K": 10, "M": 20, "G": 30}[unit]


def named(plumb, recording):
    """Share of samples whose innermost frame has a name, and of those that are complete."""
    report = json.loads(subprocess.run([plumb, "report", "--json", recording], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, check=True).stdout)
    first = report["reports"][0]
    script = subprocess.Popen([plumb, "fold", recording], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
    all_of, with_name = 0, 0
    for line in script.stdout:
        stack, _, weight = line.rpartition(" ")
        leaf = stack.rsplit(";", 1)[-1]
        all_of += int(weight)
        with_name += int(weight) * (not re.match(r"(\[?0x[0-9a-f]+|.*\+0x[0-9a-f]+|\[unknown)", leaf))
    script.wait()
    return first["samples"], report["lost_samples"], first["complete_percent"], 100 * with_name / max(all_of, 1)


def main():
    arguments = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    arguments.add_argument("--minutes", type=float, default=30)
    arguments.add_argument("--plumb", default=str(ROOT / "target" / "release" / "plumb"))
    arguments.add_argument("--max-memory", default="256M")
    arguments.add_argument("--folder", type=Path)
    arguments.add_argument("--nice", type=int, default=0, help="niceness of the churn, for a machine that has other work")
    args = arguments.parse_args()
    # Whoever ends this ends all that it started.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    plumb = str(Path(args.plumb).resolve())
    folder = args.folder or Path(tempfile.mkdtemp(prefix="plumb-memory-"))
    folder.mkdir(parents=True, exist_ok=True)
    recording, seconds = folder / "x.plumb", int(args.minutes * 60)
    postgres = Postgres(folder)
    loops = churn(folder)
    children = [subprocess.Popen(["nice", "-n", str(args.nice), "sh", "-c", loop], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, start_new_session=True) for loop in loops.values()]
    with open(folder / "record.err", "w") as err, open(folder / "top.out", "w") as out, open(folder / "top.err", "w") as top_err:
        bound = ["--max-memory", args.max_memory]
        watched = [
            Watched("record -a", [plumb, "record", "-a", *bound, "--duration", str(seconds), "-o", str(recording)], subprocess.DEVNULL, err),
            Watched("top -a --batch", [plumb, "top", "-a", *bound, "--batch", "--interval", "5", "-n", str(max(seconds // 5, 1))], out, top_err),
        ]
        begin, second = time.monotonic(), 0
        try:
            while any(one.child.poll() is None for one in watched):
                for one in watched:
                    one.look(second)
                second += 1
                time.sleep(max(0, begin + second - time.monotonic()))
                if second > seconds:
                    # At the end names take what there is.
                    for child in children:
                        if child.poll() is None:
                            os.killpg(child.pid, signal.SIGKILL)
                if second == seconds + 120:
                    # It is late, and has shown fewer tables.
                    watched[1].child.send_signal(signal.SIGTERM)
        finally:
            for child in children:
                if child.poll() is None:
                    os.killpg(child.pid, signal.SIGKILL)
            for one in watched:
                if one.child.poll() is None:
                    os.killpg(one.child.pid, signal.SIGTERM)
            postgres.stop()
    samples, lost, complete, names = named(plumb, recording)
    top_lost = max(map(int, re.findall(r"(\d+) lost", (folder / "top.out").read_text())), default=0)
    mb = lambda kilobytes: f"{kilobytes / 1024:.0f}"
    print(f"`bench/memory/run.py --minutes {args.minutes:g} --max-memory {args.max_memory}`, {time.strftime('%Y-%m-%d')}, {os.cpu_count()} processors, "
          f"Linux {platform.release()}, load {os.getloadavg()[1]:.0f}. Churn: {', '.join(loops)}{', postgres' if postgres.bench else ''}.\n")
    print("| | bound MiB | most VmHWM | anonymous | of files | of these BPF tables | BPF maps in the kernel | rings |")
    print("|---|---|---|---|---|---|---|---|")
    exceeded = False
    for one in watched:
        most, kernel = one.most, one.kernel
        exceeded |= most["VmHWM"] << 10 > size(args.max_memory)
        print(f"| {one.name} | {size(args.max_memory) >> 20} | {mb(most['VmHWM'])} | {mb(most['RssAnon'])} | {mb(most['RssFile'])} | "
              f"{kernel[2] >> 20} | {kernel[0] >> 20} | {kernel[1] >> 20} |")
    print(f"\nrecord: {samples} samples, {lost} lost, {complete:.2f}% of stacks complete, {names:.2f}% of samples with the name of their function, "
          f"{recording.stat().st_size / 1e6:.1f} MB. top: most lost in a table {top_lost}.\n")
    for one in watched:
        print(f"{one.name}, VmRSS each minute in MiB: {' '.join(map(str, one.series))}\n")
    print("```")
    print("\n".join(line for line in (folder / "record.err").read_text().splitlines() if "samples" in line or "memory" in line or "itself" in line))
    print("```")
    sys.exit(1 if exceeded or lost or top_lost else 0)


if __name__ == "__main__":
    main()
