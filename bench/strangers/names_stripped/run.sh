#!/bin/bash
# a stripped program (gcc -s) whose functions are known by their shares: each is one row with one name, siblings stay apart, and all outputs say the same names
. "$(dirname "$0")/../lib.sh"; need gcc python3 strip; cd "$W" || exit 1
cat > p.c <<'C'
#include <time.h>
static volatile unsigned long s;
static double cpu(void){struct timespec t;clock_gettime(CLOCK_PROCESS_CPUTIME_ID,&t);return t.tv_sec+t.tv_nsec*1e-9;}
__attribute__((noinline)) static void sib_a(void){ for(int i=0;i<20000;i++) s+=i; }
__attribute__((noinline)) static void sib_b(void){ for(int i=0;i<20000;i++) s^=i; for(int i=0;i<20000;i++) s+=i; }
__attribute__((noinline)) static void sib_c(int n){ for(int i=0;i<n;i++) { s+=i; if(n==7) { for(int k=0;k<9;k++) s-=k; } } for(int i=0;i<n;i++) s|=i; }
__attribute__((noinline)) static void ten(double d){ double e=cpu()+d; while(cpu()<e) sib_a(); s++; }
__attribute__((noinline)) static void thirty(double d){ double e=cpu()+d; while(cpu()<e) sib_b(); s+=2; }
__attribute__((noinline)) static void sixty(double d){ double e=cpu()+d; while(cpu()<e) sib_c(20000); s+=3; }
int main(void){ for(int i=0;i<10;i++){ ten(0.012); thirty(0.036); sixty(0.072); } return 0; }
C
gcc -O2 -fomit-frame-pointer -o full p.c && cp full st && strip st && gcc -O2 -fomit-frame-pointer -s -fno-asynchronous-unwind-tables -fno-unwind-tables -o notab p.c || exit 2
nm full >sym
for b in st notab; do $PLUMB record -o a.plumb -- ./$b 2>err; echo "  -- $b"; python3 "$here/../names.py" "$PLUMB" a.plumb $b || fail=1
  # three siblings by share: one row each of about 10, 30, 60% in itself
  python3 - <<'Y' >n || fail=1
import json
m = json.load(open("names.json")); big = sorted((v["self"] for v in m.values() if v["self"] > 0.04), reverse=True)
good = len(big) == 3 and abs(big[0]-.6) < .07 and abs(big[1]-.3) < .06 and abs(big[2]-.1) < .05
print(("  ok   " if good else "  BAD  ") + "siblings by themselves: " + ", ".join(f"{100*x:.0f}%" for x in big) + " (true 60, 30, 10: a row each)")
raise SystemExit(not good)
Y
  cat n; s=$($PLUMB fold a.plumb | grep -c ';'); c=$(grep -oE '[0-9.]+% of stacks complete' err | head -1); note "$c"
  $PLUMB record --capture perf -o b.plumb -- ./$b 2>err; $PLUMB report --json -s dso,sym a.plumb >x1; $PLUMB report --json -s dso,sym b.plumb >x2; d=$(python3 - <<'Y'
import json
def f(x, t):
    r=json.load(open(x))["reports"][0]; return {y["sym"] for y in r["rows"] if y["children_weight"]>t*r["kept_weight"] and y["kind"]=="user"}
print(" ".join(sorted(f("x1",.1)-f("x2",.03)|f("x2",.1)-f("x1",.03))))
Y
); [ -z "$d" ] && pass "bpf and perf have the same names" || bad "names differ between bpf and perf: $d"; done
# each name is FILE+0xADDRESS of a function's beginning, as the program with symbols says (both files have the same code)
$PLUMB record -o a.plumb -- ./st 2>err; $PLUMB report --json -s dso,sym a.plumb >x1
python3 - <<'Y' || fail=1
import json, re
sym = {int(l.split()[0], 16): l.split()[2].split(".")[0] for l in open("sym") if len(l.split()) == 3 and l.split()[1] in "tT"}
r = json.load(open("x1"))["reports"][0]; bad = 0
for x in r["rows"]:
    if x["dso"].split("/")[-1] != "st" or x["self_weight"] < .04 * r["kept_weight"]: continue
    m = re.search(r"\+0x([0-9a-f]+)$", x["sym"]); n = sym.get(int(m.group(1), 16)) if m else None
    print(f"  {'ok  ' if n else 'BAD '} {x['sym']} is {n or 'the beginning of no function'}"); bad |= not n
raise SystemExit(bad)
Y
finish
