#!/bin/bash
# a static stripped program, and a stripped library mapped twice by two names: one name per function everywhere, the same in perf.data of the same program
. "$(dirname "$0")/../lib.sh"; need gcc python3; cd "$W" || exit 1
cat > p.c <<'C'
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
static volatile unsigned long s; static char a[1<<16], b[1<<16];
static double cpu(void){struct timespec t;clock_gettime(CLOCK_PROCESS_CPUTIME_ID,&t);return t.tv_sec+t.tv_nsec*1e-9;}
static int cmp(const void*x,const void*y){ return *(const int*)x-*(const int*)y; }
__attribute__((noinline)) static void sorts(void){ int v[600]; for(int i=0;i<600;i++) v[i]=(i*7919)%601; qsort(v,600,sizeof(int),cmp); s+=v[3]; }
__attribute__((noinline)) static void loops(void){ for(int i=0;i<30000;i++) s+=i; }
__attribute__((noinline)) static void half_one(double d){ double e=cpu()+d; while(cpu()<e) loops(); s++; }
__attribute__((noinline)) static void half_two(double d){ double e=cpu()+d; while(cpu()<e) sorts(); s+=2; }
int main(void){ for(int i=0;i<12;i++){ half_one(0.05); half_two(0.05); } return 0; }
C
gcc -O2 -static -s -fomit-frame-pointer -o stat p.c 2>/dev/null || skip "no static libc here"
gcc -O2 -static -s -fomit-frame-pointer -fno-asynchronous-unwind-tables -fno-unwind-tables -fno-exceptions -o stat2 p.c
for b in stat stat2; do echo "  -- $b"; $PLUMB record -o a.plumb -- ./$b 2>err; python3 "$here/../names.py" "$PLUMB" a.plumb $b || fail=1
  o=$(python3 - <<'Y'
import json
m=json.load(open("names.json")); b=sorted((v["self"] for v in m.values() if v["self"]>.04),reverse=True); print(round(100*b[0]) if b else 0, len(b))
Y
); set -- $o; within "$1" 42 56 && pass "the loop's function is one row of $1% (true 50)" || bad "the largest row has $1% in itself (true 50)"; done
cat > l.c <<'C'
static volatile unsigned long s;
__attribute__((noinline)) static void inner(void){ for(int i=0;i<20000;i++) s+=i; }
void *enter(void){ for(int i=0;i<20;i++) inner(); return (void*)s; }
C
cat > q.c <<'C'
#include <dlfcn.h>
#include <stdio.h>
#include <time.h>
static double cpu(void){struct timespec t;clock_gettime(CLOCK_PROCESS_CPUTIME_ID,&t);return t.tv_sec+t.tv_nsec*1e-9;}
typedef void *fn(void);
int main(void){ void*h=dlopen("./one.so",RTLD_NOW), *g=dlopen("./two.so",RTLD_NOW); if(!h||!g) return 2; fn*f=(fn*)dlsym(h,"enter"), *k=(fn*)dlsym(g,"enter"); double e=cpu()+0.3; while(cpu()<e) f(); e=cpu()+0.6; while(cpu()<e) k(); return 0; }
C
gcc -O2 -fPIC -shared -s -fomit-frame-pointer -o one.so l.c && cp one.so two.so && gcc -O2 -o q q.c -ldl; echo "  -- libraries"
$PLUMB record -o a.plumb -- ./q 2>err; $PLUMB report --json -s dso,sym --no-children a.plumb >r.json
python3 - <<'Y' || fail=1
import json
r=json.load(open("r.json"))["reports"][0]; W=r["kept_weight"]; d={}
for x in r["rows"]:
    n=x["dso"].split("/")[-1]
    if n in("one.so","two.so") and x["self_weight"]>.03*W: d.setdefault(n,[]).append((x["sym"],100*x["self_weight"]/W))
ok=all(len(d.get(n,[]))==1 for n in("one.so","two.so")) and abs(d["one.so"][0][1]-33)<6 and abs(d["two.so"][0][1]-67)<6
print(f"  {'ok  ' if ok else 'BAD '} one row for each library, 33 and 67%: {d}"); raise SystemExit(not ok)
Y
if command -v perf >/dev/null; then perf record -q --call-graph dwarf,4096 -e cpu-clock -F 499 -o pd ./stat >/dev/null 2>&1; $PLUMB record -o a.plumb -- ./stat 2>err; for x in pd a.plumb; do $PLUMB report --json -s dso,sym --no-children $x >r.$x.json 2>/dev/null; done
python3 - <<'Y' || fail=1
import json
def f(x, t):
    r=json.load(open(f"r.{x}.json"))["reports"][0]; return {y["sym"] for y in r["rows"] if y["self_weight"]>t*r["kept_weight"] and y["kind"]=="user"}
d=f("pd",.12)-f("a.plumb",.04)|f("a.plumb",.12)-f("pd",.04); print(f"  {'BAD ' if d else 'ok  '} perf.data and the recording have the same names" + (f" but for {sorted(d)}" if d else "")); raise SystemExit(bool(d))
Y
fi
finish
