#!/bin/bash
# executables and libraries whose names have spaces, " (deleted)", " (", brackets, ";", ":", a line break, other scripts; some really deleted: names, shares, and what other formats say when read again
. "$(dirname "$0")/../lib.sh"; root; need gcc python3; cd "$W" || exit 1
cat > l.c <<'C'
#include <time.h>
static volatile unsigned long s;
static double cpu(void){struct timespec t;clock_gettime(CLOCK_PROCESS_CPUTIME_ID,&t);return t.tv_sec+t.tv_nsec*1e-9;}
__attribute__((noinline)) void odd_lib(double d){ double e=cpu()+d; while(cpu()<e) for(int i=0;i<20000;i++) s+=i; }
C
cat > p.c <<'C'
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>
static volatile unsigned long s;
static double cpu(void){struct timespec t;clock_gettime(CLOCK_PROCESS_CPUTIME_ID,&t);return t.tv_sec+t.tv_nsec*1e-9;}
__attribute__((noinline)) void odd_main(double d){ double e=cpu()+d; while(cpu()<e) for(int i=0;i<20000;i++) s+=i; }
int main(int c,char**v){ void*h=dlopen(v[1],RTLD_NOW); if(!h){puts(dlerror());return 2;} void(*f)(double)=(void(*)(double))dlsym(h,"odd_lib"); double d=atof(v[2]);
  if(c>3){ unlink(v[0]); unlink(v[1]); puts("gone"); fflush(stdout); }
  while(d>0){ odd_main(0.006); f(0.014); d-=0.02; } return 0; }
C
gcc -O2 -g -fPIC -shared -fomit-frame-pointer l.c -o l.so && gcc -O2 -g -fomit-frame-pointer p.c -o p -ldl || exit 2
chk() { s=$(share a.plumb 'main;odd_lib' $3); t=$(share a.plumb 'main;odd_main' $3); within "$s" 60 80 && within "$t" 20 40 && pass "$1 ($2): $s%, $t%" || { bad "$1 ($2): odd_lib $s%, odd_main $t% (true 70, 30)"; top3 $3 a.plumb; sed -n 2,4p err; }; }
nl=$'\n'
i=0; for n in "x (deleted)" "y (1" "[heap]" "semi;colon" "line${nl}break" "日本 語" "trail "; do i=$((i+1)); d="d$i"; mkdir $d; cp p "$d/$n"; cp l.so "$d/$n.so" ; 
  $PLUMB record -o a.plumb -- "$d/$n" "$W/$d/$n.so" 0.2 2>err; chk "$(printf %q "$n")" command
  n1=$($PLUMB report --no-children -s dso --json a.plumb 2>/dev/null >r.json; N="$n" python3 -c 'import json,os; r=json.load(open("r.json"))["reports"][0]["rows"]; n=os.environ["N"]; print(sum(1 for x in r if x["dso"].split("/")[-1] in (n,n+".so")))' 2>/dev/null); [ "$n1" = 2 ] || bad "report --json has the files of $(printf %q "$n") as $(pyjson r.json '[x["dso"] for x in j["reports"][0]["rows"]][:3]')"
done
for n in "x (deleted)" "p (q) r"; do i=$((i+1)); d="d$i"; mkdir $d; cp p "$d/$n"; cp l.so "$d/$n.so"; "$W/$d/$n" "$W/$d/$n.so" 5 gone >out & p=$!; kids="$kids $p"; filled out; rm -f out
  $PLUMB record -o a.plumb -p $p --duration 0.7 2>err; chk "$n, really deleted" -p; kill $p; wait $p 2>/dev/null; done
# through other formats and back
d=d99; n="x (deleted) (y; z"; mkdir $d; cp p "$d/$n"; cp l.so "$d/$n.so"; $PLUMB record -o z.plumb -- "$d/$n" "$W/$d/$n.so" 0.4 2>err
for x in z.perf.txt z.pb.gz z.folded z.firefox.json z.speedscope.json z.callgrind z.trace.json; do $PLUMB export -o $x z.plumb 2>err || bad "export $x: $(head -1 err)"; s=$(share $x 'odd_lib'); within "$s" 60 78 && pass "$x read again: odd_lib $s%" || bad "$x read again: odd_lib $s% (true 70)"; done
if command -v perf >/dev/null; then perf record -q --call-graph dwarf -e cpu-clock -F 997 -o pd "$d/$n" "$W/$d/$n.so" 0.4 >/dev/null 2>&1; s=$(share pd 'odd_lib'); within "$s" 60 78 && pass "perf.data: odd_lib $s%" || { bad "perf.data: odd_lib $s% (true 70)"; top3 pd; }
  perf script -i pd >pd.txt 2>/dev/null; s=$(share pd.txt 'odd_lib'); within "$s" 60 78 && pass "perf script: odd_lib $s%" || { bad "perf script: odd_lib $s% (true 70)"; top3 pd.txt; }; fi
finish
