# sums.py PLUMB FILE EVENT FILTER...: what all readers say of one selection has to add up to one number; prints ok and BAD lines
import csv, io, json, re, subprocess, sys
plumb, file, event = sys.argv[1:4]; flt = sys.argv[4:]
name = f"{event} {' '.join(flt) or 'all'}"
ev = ["--event", event] if event else []
bad = []
def run(*a):
    r = subprocess.run([plumb, *a], capture_output=True, text=True, errors="replace")
    if r.returncode: bad.append(f"`{' '.join(a)}`: status {r.returncode}: {r.stderr.strip().splitlines()[:1]}")
    return r.stdout if not r.returncode else None
def js(*a):
    o = run(*a)
    try: return json.loads(o) if o else None
    except ValueError: bad.append(f"`{' '.join(a)}` is no JSON")
def same(what, a, b, tol=0):
    if a is None or b is None: return
    if abs(a - b) > max(tol, abs(b) * 1e-9 + 2): bad.append(f"{what}: {a} instead of {b}")
j = js("report", "--json", *ev, *flt, file)
if not j or not j["reports"]:
    # a selection without samples is fine where all agree
    o = run("fold", *ev, *flt, file)
    print(f"  BAD  {name}: no report: {bad}" if o else f"  ok   {name}: nothing selected"); sys.exit(1 if o else 0)
r = j["reports"][0]; S, Wt = r["kept_samples"], r["kept_weight"]; clock = r["unit"] == "ns" and "clock" in r["event"]
if S == 0:
    o = run("fold", *ev, *flt, file); print(f"  {'BAD ' if o else 'ok  '} {name}: nothing selected"); sys.exit(bool(o))
idle = r.get("idle_rows") or []
isum = sum(x["self_weight"] for x in idle); isam = sum(x["self_samples"] for x in idle)
same("report --json: rows' self_samples", sum(x["self_samples"] for x in r["rows"]), S)
same("report --json: rows' self_weight", sum(x["self_weight"] for x in r["rows"]), Wt)
for x in r["rows"]:
    if x["children_weight"] > Wt + 2 or x["self_weight"] > x["children_weight"] + 2: bad.append(f"report --json: row {x['sym']}: self {x['self_weight']}, children {x['children_weight']}, all {Wt}")
for keys in ("sym", "pid", "tid,sym", "exe,dso", "comm,dso,sym,srcline"):
    k = js("report", "--json", "--sort", keys, *ev, *flt, file)
    if k: same(f"report --sort {keys} --json", sum(x["self_weight"] for x in k["reports"][0]["rows"]), Wt)
for o in (["--csv"], ["--csv", "--no-children"]):
    t = run("report", *o, *ev, *flt, file)
    if t:
        rows = list(csv.DictReader(io.StringIO(t)))
        same(f"report {' '.join(o)}: samples", sum(float(x["self_samples"]) for x in rows if x.get("event", event) in (event, r["event"])), S)
        same(f"report {' '.join(o)}: weights", sum(float(x["self_weight"]) for x in rows if x.get("event", event) in (event, r["event"])), Wt)
k = js("report", "--json", "--min", "5", *ev, *flt, file)
if k:
    q = k["reports"][0]; lo = (q.get("rows_left_out") or {}).get("self_weight", 0)
    same("report --min 5: rows and rows left out", sum(x["self_weight"] for x in q["rows"]) + lo, Wt)
for d in ("--top-down", "--bottom-up"):
    k = js("report", "--json", d, "--min", "0", *ev, *flt, file)
    if k:
        t = k["reports"][0].get("trees") or []
        n = t[0]["nodes"] if t else []
        roots = [x for x in n if x.get("parent") is None]
        cut = t[0].get("cut_weight", 0) if t else 0
        tot = sum(x["children_weight"] for x in roots)
        if tot > Wt + 2 or tot < Wt * 0.9999 - 2: bad.append(f"report {d} --json: roots {tot} of {Wt}")
def folded(*a):
    o = run(*a); 
    return None if o is None else sum(int(l.rsplit(" ", 1)[1]) for l in o.splitlines() if l)
same("fold --weights", folded("fold", "--weights", *ev, *flt, file), Wt + isum, tol=len(r["rows"]))
if clock: same("fold", folded("fold", *ev, *flt, file), S)
same("export folded", folded("export", "--format", "folded", "-o", "-", *ev, *flt, file), S if clock else Wt + isum, tol=len(r["rows"]))
o = run("script", *ev, *flt, file)
if o: 
    n = sum(1 for l in o.splitlines() if l and not l[0].isspace() and re.search(r"\d+\.\d+: ", l)) or sum(1 for l in o.splitlines() if re.search(r"\d+\.\d{6,9}:", l))
    if n: same("script: samples", n, S + isam)
if event in ("", "cpu-clock", r["event"]):
    k = js("procs", "--json", *ev, *flt, file)
    if k:
        same("procs: weight", k["weight"], Wt); same("procs: programs", sum(x["self_weight"] for x in k["programs"]), Wt, tol=20)
        same("procs: samples", k["samples"], S)
if clock and "--time" not in flt:  # kernel has no --time
    k = js("kernel", "--json", *ev, *flt, file)
    if k:
        same("kernel: total_ns", k["total_ns"], Wt); same("kernel: rows", sum(x["cpu_ns"] or 0 for x in k["rows"]), Wt, tol=20); same("kernel: user + kernel", k["user_ns"] + k["kernel_ns"], Wt, tol=20)
        same("kernel: samples", sum(x["samples"] for x in k["rows"]), S)
k = js("explain", "--json", *ev, *flt, file) if clock else None
if k:
    t = k["split"]["total"]; same("explain: split.total", t["weight"], Wt); same("explain: rows", sum(x["cost"]["weight"] for x in k["split"]["rows"]), Wt, tol=20)
    if "--ignore" not in flt and k["left_out"]["weight"] and not flt: bad.append(f"explain: left out {k['left_out']} without a filter")
    f = {(x["function"]): x for x in k["functions"]}
    m = {}
    for x in r["rows"]: m[x["sym"]] = m.get(x["sym"], 0) + x["self_weight"]
    for n, x in list(f.items())[:5]:
        if not x["inlined"] and n in m and sum(1 for y in k["functions"] if y["function"] == n) == 1: same(f"explain: self of {n}", x["self_cost"]["weight"], m[n], tol=m[n] * 0.001)
o = run("report", *ev, *flt, file)
if o:
    h = re.search(r"^# Samples: +([\d,]+)", o, re.M)
    if h:
        n = int(h.group(1).replace(",", ""))
        if n not in (S, r["samples"], S + isam, r["samples"] + isam): bad.append(f"report's header: {n} samples, JSON says {S} of {r['samples']}")
    t = 0
    for l in o.splitlines():
        q = re.match(r"\s+([\d.]+)%\s+([\d.]+)%\s", l)
        if q: t += float(q.group(2))
    share = 100 * Wt / r["weight"] if r["weight"] else 0
    if t and not idle and abs(t - share) > 0.06 * len(r["rows"]) + 6 + (0.5 * len(r["rows"]) if S < 1000 else 0): bad.append(f"report's text: self percents add up to {t:.1f}, true {share:.1f}")
for b in bad[:8]: print(f"  BAD  {name}: {b}")
if not bad: print(f"  ok   {name}: {S} samples, {Wt}")
sys.exit(bool(bad))
