# names.py PLUMB RECORDING DSO: names of the functions of one file in report, fold, flame SVG, pprof, callgrind, speedscope, explain
# prints for each source a line: source TAB share-sorted names with a self share above 3%
import gzip, json, re, subprocess, sys
plumb, rec, dso = sys.argv[1:4]
def run(*a, **k): return subprocess.run([plumb, *a], capture_output=True, text=True, errors="replace", **k).stdout
out = {}
j = json.loads(run("report", "--json", "--sort", "dso,sym", "--full-names", rec))
R = j["reports"][0]; W = R["kept_weight"]
rows = [x for x in R["rows"] if x["dso"].split("/")[-1] == dso]
big = {x["sym"]: x["children_weight"] / W for x in rows if x["children_weight"] > 0.04 * W and not x["sym"].startswith("[")}
out["report"] = big
f = {}
for l in run("fold", rec).splitlines():
    st, n = l.rsplit(" ", 1)
    for x in set(st.split(";")): f[x] = f.get(x, 0) + int(n)
t = sum(int(l.rsplit(" ", 1)[1]) for l in run("fold", rec).splitlines())
out["fold"] = {k: v / t for k, v in f.items() if k in big}
subprocess.run([plumb, "flame", "-o", "n.svg", rec], capture_output=True)
svg = open("n.svg", errors="replace").read()
import html
tit = {}
for m in re.findall(r"<title>(.*?) \([\d,.]+ [^)]*\)</title>", svg): tit[html.unescape(m)] = 1
out["flame svg"] = {k: 1 for k in tit if k in big}
subprocess.run([plumb, "export", "-o", "n.speedscope.json", rec], capture_output=True)
out["speedscope"] = {x["name"]: 1 for x in json.load(open("n.speedscope.json"))["shared"]["frames"] if x["name"] in big}
subprocess.run([plumb, "export", "-o", "n.callgrind", rec], capture_output=True)
cg = open("n.callgrind", errors="replace").read(); out["callgrind"] = {k: 1 for k in big if re.search(r"fn=\(\d+\) " + re.escape(k) + "$", cg, re.M)}
subprocess.run([plumb, "export", "-o", "n.pb.gz", rec], capture_output=True)
from shutil import which
go = which("go") or "/usr/local/go/bin/go"
p = subprocess.run([go, "tool", "pprof", "-raw", "n.pb.gz"], capture_output=True, text=True, errors="replace").stdout
if p: out["pprof"] = {k: 1 for k in big if re.search(r"(?m)(^|\s)" + re.escape(k) + r"(\s|$)", p)}
e = json.loads(run("explain", "--json", rec)); ef = {x["function"]: x for x in e["functions"]}
selfs = {x["sym"] for x in rows if x["self_weight"] > 0.05 * W}
out["explain"] = {k: 1 for k in ef if k in big}
bad = 0
for s, d in out.items():
    want = set(big) if s != "explain" else selfs
    miss = want - set(d)
    if miss: print(f"  BAD  {s} lacks {sorted(miss)[:3]}"); bad = 1
    else: print(f"  ok   {s}: the same {len(want)} names")
dup = [k for k in big if sum(1 for x in rows if x["sym"] == k) > 1]
if dup: print(f"  BAD  report: one name in several rows: {dup}"); bad = 1
for k in big:
    if abs(out["fold"].get(k, 0) - big[k]) > 0.005: print(f"  BAD  {k}: fold {100*out['fold'].get(k,0):.1f}%, report {100*big[k]:.1f}%"); bad = 1
json.dump({k: {"children": x["children_weight"] / W, "self": x["self_weight"] / W} for x in rows for k in [x["sym"]]}, open("names.json", "w"))
sys.exit(bad)
