# sourced by run.sh of each case
PLUMB=${PLUMB:-plumb}
here=$(cd "$(dirname "$0")" && pwd)
W=$(mktemp -d)
fail=0; kids=
cleanup() { trap - EXIT; type case_cleanup >/dev/null 2>&1 && case_cleanup; { for k in $kids; do kill -9 "$k"; done; wait; } 2>/dev/null; cd /; rm -rf "$W"; }
trap cleanup EXIT; trap 'exit 130' INT TERM
pass() { echo "  ok   $*"; }
bad() { echo "  BAD  $*"; fail=1; }
note() { echo "       $*"; }
skip() { echo "SKIP $(basename "$here"): $*"; exit 2; }
need() { for n in "$@"; do command -v "$n" >/dev/null 2>&1 || skip "no $n here"; done; }
root() { [ "$(id -u)" = 0 ] || skip "not root"; }
finish() { if [ $fail = 0 ]; then echo "PASS $(basename "$here")"; else echo "FAIL $(basename "$here")"; fi; exit $fail; }
# share FILE REGEX [filters]: percent of all samples whose folded stack matches
share() { local f=$1 re=$2; shift 2; $PLUMB fold "$@" "$f" 2>/dev/null | awk -v re="$re" '{n=$NF; t+=n; if ($0 ~ re) s+=n} END {printf "%.1f\n", t? 100*s/t : 0}'; }
# total FILE [options of fold]: sum of all stacks
total() { local f=$1; shift; $PLUMB fold "$@" "$f" 2>/dev/null | awk '{t+=$NF} END {printf "%.0f\n", t}'; }
# weight FILE REGEX [options of fold]: sum of matching stacks
weight() { local f=$1 re=$2; shift 2; $PLUMB fold "$@" "$f" 2>/dev/null | awk -v re="$re" '$0 ~ re {t+=$NF} END {printf "%.0f\n", t}'; }
ge() { awk -v a="$1" -v b="$2" 'BEGIN{exit !(a+0>=b+0)}'; }
# within A LOW HIGH
within() { awk -v a="$1" -v l="$2" -v h="$3" 'BEGIN{exit !(a!="" && a+0>=l+0 && a+0<=h+0)}'; }
# near A B PERCENT
near() { awk -v a="$1" -v b="$2" -v p="$3" 'BEGIN{d=a-b; if(d<0)d=-d; exit !(a!="" && d<=b*p/100)}'; }
top3() { $PLUMB fold "$@" 2>&1 | awk '{n=$NF; $NF=""; print n, $0}' | sort -rn | head -3 | cut -c1-170 | sed 's/^/         /'; }
# coverage FILE-with-summary
coverage() { grep -oE 'coverage [0-9.]+' "$1" | head -1 | grep -oE '[0-9.]+'; }
# pyjson FILE EXPRESSION (j is the object)
pyjson() { python3 -c 'import json,sys
j=json.load(open(sys.argv[1])); print(eval(sys.argv[2]))' "$1" "$2" 2>/dev/null; }
# started PIDFILE or seconds: waits until a file has content
filled() { for _ in $(seq 100); do [ -s "$1" ] && return 0; sleep 0.05; done; return 1; }
# bpfload OBJECT: loads and attaches all programs of it (libbpf by Python); leaves its process number in $bpfpid, "attached" in bt
bpfload() {
  cat >"$W/bpfload.py" <<'Y'
import ctypes, sys, time
try: l = ctypes.CDLL("libbpf.so.1")
except OSError: print("no libbpf.so.1"); sys.exit(1)
P = ctypes.c_void_p
for n in ("bpf_object__open_file", "bpf_object__next_program", "bpf_program__attach"): getattr(l, n).restype = P
l.bpf_object__open_file.argtypes = [ctypes.c_char_p, P]; l.bpf_object__load.argtypes = [P]
l.bpf_object__next_program.argtypes = [P, P]; l.bpf_program__attach.argtypes = [P]
o = l.bpf_object__open_file(sys.argv[1].encode(), None)
if not o or l.bpf_object__load(o): print("can't load"); sys.exit(1)
p = None; n = 0
while True:
    p = l.bpf_object__next_program(o, p)
    if not p: break
    if not l.bpf_program__attach(p): print("can't attach program", n); sys.exit(1)
    n += 1
print("attached", n, flush=True)
time.sleep(300)
Y
  python3 "$W/bpfload.py" "$1" >"$W/bt" 2>"$W/bt.err" & bpfpid=$!; kids="$kids $bpfpid"
  for _ in $(seq 100); do [ -s "$W/bt" ] && break; sleep 0.1; done
  grep -q attached "$W/bt"
}
# file_offset PROGRAM FUNCTION: where in the file its first instruction is
file_offset() { python3 - "$1" "$2" <<'Y'
import subprocess,sys
a=[l.split() for l in subprocess.check_output(["nm",sys.argv[1]],text=True).splitlines()]
v=[int(x[0],16) for x in a if len(x)==3 and x[2]==sys.argv[2]][0]
for l in subprocess.check_output(["readelf","-lW",sys.argv[1]],text=True).splitlines():
    w=l.split()
    if w and w[0]=="LOAD" and int(w[2],16)<=v<int(w[2],16)+int(w[4],16): print(hex(v-int(w[2],16)+int(w[1],16)))
Y
}
