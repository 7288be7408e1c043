#!/usr/bin/env python3
"""Records real programs and holds plumb's outputs against one another: the same function must have the same share in each.

run.py [--plumb PLUMB] [--seconds N] [NAME...]      prints a table in Markdown; exits with 1 if outputs differ

Each program is recorded once. Its hottest functions by self time, as `report --csv` has them, are looked up in `fold`, a flame graph's SVG,
pprof (read by `go tool pprof`), the page's answers, a store that the recording was pushed to, and `explain --json`. `top` watches the program
apart from the recording, so that of it only the hottest function is compared, within chance.
Programs that this machine lacks are left out, and said.
"""
import argparse
import collections
import csv
import html
import io
import json
import math
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import urllib.request

HERE = os.path.dirname(os.path.abspath(__file__))
# Functions compared, and the largest difference between two outputs of one recording, in percentage points: shares are printed with a tenth.
ROWS = 5
MOST = 0.06


def run(words, **options):
    return subprocess.run(words, capture_output=True, text=True, errors="replace", timeout=300, **options)


def wait_for(condition, seconds=20):
    end = time.time() + seconds
    while time.time() < end:
        if condition():
            return True
        time.sleep(0.1)
    return False


class Work:
    """A program that is recorded: a command, or a process that others keep busy."""

    def __init__(self, command=None, server=None, load=None, setup=None, needs=(), root=None):
        self.command, self.server, self.load, self.setup, self.needs, self.root = command, server, load, setup, needs, root


def write(name, text):
    with open(name, "w", encoding="utf-8") as file:
        file.write(text)


def big_source(_):
    """A C++ source that takes some seconds to compile."""
    lines = ["#include <map>", "#include <string>", "#include <vector>", "#include <algorithm>"]
    for i in range(250):
        lines.append(f"template<int N> struct A{i} {{ std::map<int, std::vector<std::string>> m; int f(int x) {{ m[x].push_back(std::to_string(N)); "
                     f"std::sort(m[x].begin(), m[x].end()); return m.size(); }} }}; int g{i}(int x) {{ A{i}<{i}> a; return a.f(x); }}")
    write("big.cpp", "\n".join(lines))


def postgres(_):
    binaries = sorted(os.listdir("/usr/lib/postgresql"))[-1]
    binaries = f"/usr/lib/postgresql/{binaries}/bin"
    shutil.rmtree("pg", ignore_errors=True)
    os.mkdir("pg")
    os.chmod(".", 0o755)
    shutil.chown("pg", "postgres", "postgres")
    run(["su", "postgres", "-c", f"{binaries}/initdb -D {os.getcwd()}/pg -A trust"])
    return [["su", "postgres", "-c", f"exec {binaries}/postgres -D {os.getcwd()}/pg -p 5599 -k /tmp -c fsync=off"]]


GO = """package main
import ("fmt"; "sort"; "strings")
type shape interface { area() float64 }
type square struct { a float64 }
func (s square) area() float64 { return s.a * s.a }
func words(n int) []string { out := []string{}; for i := 0; i < n; i++ { out = append(out, strings.Repeat(fmt.Sprint(i), 3)) }; return out }
func main() { m := map[string]int{}; sum := 0.0
 for r := 0; r < 60; r++ { w := words(20000); sort.Strings(w); for _, x := range w { m[x[:2]]++ }; var s shape = square{2}; sum += s.area() }
 fmt.Println(len(m), sum) }
"""
JAVA = """import java.util.*;
public class T { static long mix(long x) { for (int i = 0; i < 1000; i++) x = x * 31 + (x >>> 7); return x; }
 static String build(int n) { StringBuilder b = new StringBuilder(); for (int i = 0; i < n; i++) b.append(i).append(','); return b.toString(); }
 public static void main(String[] a) { long s = 0; for (int i = 0; i < 400000; i++) { s += mix(i); if (i % 100 == 0) s += build(2000).hashCode(); } System.out.println(s); } }
"""
NODE = """function mix(x) { for (let i = 0; i < 1000; i++) x = (x * 31 + i) | 0; return x; }
function text(n) { return JSON.stringify(JSON.parse(JSON.stringify([...Array(n).keys()].map(i => ({ i, s: 'x'.repeat(i % 9) }))))); }
let s = 0; for (let i = 0; i < 700000; i++) { s += mix(i); if (i % 700 == 0) s += text(400).length; } console.log(s);
"""
PYTHON = """import json, re
def parse(text): return json.loads(text)
def count(words):
    found = {}
    for word in words: found[word] = found.get(word, 0) + 1
    return found
def work():
    text = json.dumps([{"k%d" % i: ["v"] * (i % 5)} for i in range(300)])
    for _ in range(6000): parse(text); count(re.findall(r"k\\d", text))
work()
"""
RUBY = """def fib(n) n < 2 ? n : fib(n - 1) + fib(n - 2) end
def words(n) (1..n).map { |i| i.to_s * 3 }.sort.join(',').scan(/1+/).size end
80.times { fib(22); words(9000) }
"""
PHP = """<?php function mix($x) { for ($i = 0; $i < 1000; $i++) $x = ($x * 31 + $i) & 0xffffff; return $x; }
function text($n) { $a = []; for ($i = 0; $i < $n; $i++) $a[] = md5("x$i"); sort($a); return strlen(implode(',', $a)); }
$s = 0; for ($i = 0; $i < 60000; $i++) { $s += mix($i); if ($i % 200 == 0) $s += text(3000); } echo $s;
"""
SHELL = """for i in $(seq 400); do d=$(dirname /usr/lib/$i); x=$(echo $d | cut -d/ -f2); [ "$x" = usr ] || exit 1; done
"""
PAGE = "daemon off; worker_processes 1; pid nginx.pid; error_log stderr; events {} http { access_log off; server { listen 127.0.0.1:8599; root .; gzip on; gzip_types *; gzip_min_length 1; } }"

WORKS = {
    "gcc": Work(["g++", "-O1", "-c", "big.cpp", "-o", "big.o"], setup=big_source, needs=["g++"]),
    "git log -S": Work(["git", "-C", "{repository}", "log", "-S", "VerySpecialWord", "--oneline"], needs=["git"]),
    "PostgreSQL, pgbench": Work(server=postgres, load=["pgbench", "-h", "/tmp", "-p", "5599", "-U", "postgres", "-c", "4", "-T", "{seconds}", "-N", "postgres"],
                                setup=None, needs=["pgbench", "psql"], root="postgres"),
    "redis": Work(server=lambda _: [["redis-server", "--port", "6599", "--save", "", "--bind", "127.0.0.1"]],
                  load=["redis-benchmark", "-p", "6599", "-t", "set,get,lpush,lrange_100", "-n", "60000", "-q"], needs=["redis-server", "redis-benchmark"]),
    "nginx": Work(server=lambda _: [["nginx", "-p", os.getcwd() + "/", "-c", "nginx.conf"]], load=["wrk", "-t1", "-c8", "-d{seconds}s", "http://127.0.0.1:8599/big.cpp", "-H", "Accept-Encoding: gzip"],
                  setup=lambda work: (write("nginx.conf", PAGE), big_source(work), os.chmod(".", 0o755)), needs=["nginx", "wrk"]),
    "Go": Work(["./g"], setup=lambda _: (write("g.go", GO), run(["go", "build", "-o", "g", "g.go"])), needs=["go"]),
    "Java": Work(["java", "-XX:+UnlockDiagnosticVMOptions", "-XX:+DumpPerfMapAtExit", "-cp", ".", "T"], setup=lambda _: (write("T.java", JAVA), run(["javac", "T.java"])), needs=["java", "javac"]),
    "Node": Work(["node", "--perf-basic-prof", "t.js"], setup=lambda _: write("t.js", NODE), needs=["node"]),
    "Python": Work(["python3", "t.py"], setup=lambda _: write("t.py", PYTHON), needs=["python3"]),
    "Ruby": Work(["ruby", "t.rb"], setup=lambda _: write("t.rb", RUBY), needs=["ruby"]),
    "PHP": Work(["php", "t.php"], setup=lambda _: write("t.php", PHP), needs=["php"]),
    "shell script": Work(["bash", "t.sh"], setup=lambda _: write("t.sh", SHELL), needs=["bash"]),
}


class Tour:
    def __init__(self, plumb, seconds):
        self.plumb, self.seconds = plumb, seconds
        repository = run(["git", "-C", HERE, "rev-parse", "--show-toplevel"]).stdout.strip()
        self.words = {"repository": repository, "seconds": str(seconds + 4)}

    def fill(self, words):
        return [word.format(**self.words) for word in words]

    def record(self, work):
        """Records a program. Returns plumb's summary, and what `top` says of it live."""
        if work.setup:
            work.setup(work)
        if work.command:
            command = self.fill(work.command)
            said = run([self.plumb, "record", "-o", "r.plumb", "--", *command])
            live = run([self.plumb, "top", "--batch", "--rows", "0", "-n", "1", "--interval", str(self.seconds), "--", *command]).stdout
            return said.stderr, live
        servers = [subprocess.Popen(words, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, start_new_session=True) for words in work.server(work)]
        time.sleep(2)
        pid = servers[0].pid
        if work.root:
            run(["pgbench", "-h", "/tmp", "-p", "5599", "-U", "postgres", "-i", "-q", "postgres"])
        load = subprocess.Popen(self.fill(work.load), stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        time.sleep(0.5)
        said = run([self.plumb, "record", "--tree", str(pid), "--duration", str(self.seconds), "-o", "r.plumb"])
        load.kill()
        load = subprocess.Popen(self.fill(work.load), stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        live = run([self.plumb, "top", "--batch", "--rows", "0", "-n", "1", "--interval", str(self.seconds), "--tree", str(pid)]).stdout
        load.kill()
        for server in servers:
            os.killpg(server.pid, signal.SIGTERM)
            server.wait()
        return said.stderr, live

    def report(self):
        rows = csv.DictReader(io.StringIO(run([self.plumb, "report", "--csv", "--min", "0", "r.plumb"]).stdout))
        shares, samples = collections.Counter(), 0
        for row in rows:
            shares[row["sym"]] += float(row["self_percent"])
            samples += int(row["self_samples"])
        return shares, samples

    def fold(self):
        shares, total = collections.Counter(), 0
        for line in run([self.plumb, "fold", "r.plumb"]).stdout.splitlines():
            stack, weight = line.rsplit(" ", 1)
            shares[stack.rsplit(";", 1)[-1]] += int(weight)
            total += int(weight)
        return {name: 100 * weight / max(total, 1) for name, weight in shares.items()}

    def svg(self):
        """Names of a picture's boxes, of which the narrowest are left out."""
        run([self.plumb, "flame", "-o", "r.svg", "r.plumb"])
        with open("r.svg", encoding="utf-8") as file:
            titles = re.findall(r"<title>(.*?) \([^()]*\)</title>", file.read())
        return {html.unescape(title).replace("\u2060", "") for title in titles}

    def pprof(self):
        if not shutil.which("go"):
            return None
        run([self.plumb, "export", "-o", "r.pb.gz", "r.plumb"])
        said = run(["go", "tool", "pprof", "-raw", "r.pb.gz"]).stdout
        samples, _, rest = said.partition("\nLocations\n")
        # The innermost function of a location stands in its first line.
        names = dict(re.findall(r"^ *(\d+): 0x[0-9a-f]+ (?:M=\d+ )?(?:\[F\] )?(.*?) \S*:\d+(?::\d+)? s=\d+(?:\(.*\))?$", rest.partition("\nMappings\n")[0], re.M))
        shares, total = collections.Counter(), 0
        for weight, leaf in re.findall(r"^ +\d+ +(\d+): (\d+)", samples, re.M):
            shares[names.get(leaf, "?")] += int(weight)
            total += int(weight)
        return {name: 100 * weight / max(total, 1) for name, weight in shares.items()}

    def serve(self, words, ask):
        server = subprocess.Popen([self.plumb, "serve", *words, "--listen", "127.0.0.1:4578"], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        try:
            def is_up():
                try:
                    return urllib.request.urlopen("http://127.0.0.1:4578/", timeout=2).status == 200
                except OSError:
                    return False
            wait_for(is_up)
            return ask()
        finally:
            server.terminate()
            server.wait()

    def page(self):
        def ask():
            with urllib.request.urlopen("http://127.0.0.1:4578/api/v1/recordings/0/functions") as answer:
                rows = json.load(answer)["rows"]
            shares = collections.Counter()
            for row in rows:
                shares[row["sym"]] += row["self_percent"]
            return shares
        return self.serve(["r.plumb"], ask)

    def store(self):
        shutil.rmtree("store", ignore_errors=True)

        def ask():
            to = ["--to", "http://127.0.0.1:4578"]
            run([self.plumb, "push", *to, "--service", "tour", "r.plumb"])
            said = run([self.plumb, "query", "functions", "--json", *to, "--query", '{service_name="tour"}', "--limit", "100000"])
            answer = json.loads(said.stdout)
            total = answer.get("total") or sum(row["self"] for row in answer["rows"])
            return {row["function"]: 100 * row["self"] / total for row in answer["rows"]}
        return self.serve(["--no-agent", "--store", "store"], ask)

    def explain(self):
        document = json.loads(run([self.plumb, "explain", "--json", "r.plumb"]).stdout or "{}")
        shares = collections.Counter()
        for row in document.get("functions", []):
            shares[row["function"]] += row["self"]["percent"]
        return shares

    def roots(self):
        """What a picture draws below functions."""
        names = {line.split(";", 1)[0] for line in run([self.plumb, "fold", "r.plumb"]).stdout.splitlines()}
        return names | {"all"}

    def live(self, text):
        """The functions that `top` shows, by self share."""
        shares = collections.Counter()
        for line in text.splitlines():
            row = re.match(r"\s*[\d.]+%\s+([\d.]+)%\s+\[.\] (.*?)\s{2,}\S", line)
            if row:
                shares[row[2].strip().removesuffix(" (inlined)")] += float(row[1])
        return shares


def compare(tour, name, live):
    """The table's row of a program, and what differs."""
    report, samples = tour.report()
    top = [(function, share) for function, share in report.most_common(ROWS) if share > 0.5]
    differ = []
    for output in ("fold", "pprof", "page", "store", "explain"):
        shares = getattr(tour, output)()
        if shares is None:
            differ.append(f"{output}: could not be read")
            continue
        for function, share in top:
            seen = shares.get(function)
            # It lists rows of files apart, and only the first.
            if output == "explain" and (seen is None or 0.8 * share < seen < share):
                continue
            if seen is None or abs(seen - share) > MOST:
                differ.append(f"{output}: {function} {'is missing' if seen is None else f'{seen:.2f}%'}, report {share:.2f}%")
    # A semicolon ends a frame of folded stacks, of which the picture is made.
    strangers = tour.svg() - {function.replace(";", ":") for function in report} - tour.roots()
    if strangers:
        differ.append(f"svg: {len(strangers)} names that report lacks, such as {sorted(strangers)[0]}")
    if top and live:
        function, share = top[0]
        chance = 4 * math.sqrt(share * (100 - share) / max(samples, 1)) + 6
        seen = live.get(function, 0.0)
        if abs(seen - share) > chance:
            differ.append(f"top: {function} {seen:.0f}%, report {share:.1f}% (±{chance:.0f})")
    return top, samples, differ


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--plumb", default=shutil.which("plumb") or os.path.join(HERE, "../../target/release/plumb"))
    parser.add_argument("--seconds", type=int, default=3)
    parser.add_argument("names", nargs="*", metavar="NAME")
    given = parser.parse_args()
    tour, failed = Tour(os.path.abspath(given.plumb), given.seconds), 0
    print("| program | samples | summary | hottest functions by self time | outputs that differ |\n|---|---|---|---|---|")
    for name, work in WORKS.items():
        if given.names and name not in given.names:
            continue
        lacking = [program for program in work.needs if not shutil.which(program)]
        if lacking:
            print(f"| {name} | | not here: {', '.join(lacking)} | | |")
            continue
        with tempfile.TemporaryDirectory(prefix="plumb-tour.") as folder:
            os.chdir(folder)
            summary, live = tour.record(work)
            top, samples, differ = compare(tour, name, tour.live(live))
            os.chdir("/")
        failed += bool(differ)
        said = re.search(r"coverage [\d.]+%", summary), re.search(r"[\d.]+% of stacks complete", summary)
        said = ", ".join(part[0] for part in said if part)
        hottest = ", ".join(f"`{function[:40]}` {share:.1f}%" for function, share in top)
        cell = "; ".join(differ).replace("|", "\\|") or "none"
        print(f"| {name} | {samples} | {said} | {hottest} | {cell} |", flush=True)
    print(f"\n{failed} programs differ")
    return 1 if failed else 0


sys.exit(main())
