#!/bin/bash
# plumb itself inside a PID namespace and inside a user namespace: -p with the container's numbers, command, stack, perf maps; what can't work is refused in words
. "$(dirname "$0")/../lib.sh"; root; need unshare gcc; cd "$W" || exit 1
cat > p.c <<'C'
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>
static volatile unsigned long s;
static double cpu(void){struct timespec t;clock_gettime(CLOCK_PROCESS_CPUTIME_ID,&t);return t.tv_sec+t.tv_nsec*1e-9;}
__attribute__((noinline)) void leaf(void){ for(int i=0;i<50000;i++) s+=i; }
__attribute__((noinline)) void part_a(double d){ double e=cpu()+d; while(cpu()<e) leaf(); s++; }
__attribute__((noinline)) void part_b(double d){ double e=cpu()+d; while(cpu()<e) leaf(); s++; }
int main(int c,char**v){ int n=atoi(v[1]); for(int i=0;i<n;i++){ part_a(0.006); part_b(0.014); } return 0; }
C
gcc -O2 -g -fomit-frame-pointer p.c -o nsp || exit 2
chk() { a=$(share "$2" 'main;part_a;leaf' --comm nsp); b=$(share "$2" 'main;part_b;leaf' --comm nsp); within "$a" 22 38 && within "$b" 60 78 && pass "$1: $a%, $b% (true 30, 70)" || { bad "$1: $a%, $b% (true 30, 70)"; top3 --comm nsp "$2"; sed -n 1,5p "$3"; }; }
P=$(command -v "$PLUMB"); 
cat > in.sh <<X
$P record -o cmd.plumb -- ./nsp 35 2>cmd.err; echo \$? >cmd.rc
./nsp 600 & p=\$!; echo \$p >inner.pid; sleep 0.2
$P record -o pid.plumb -p \$p --duration 1.5 2>pid.err; echo \$? >pid.rc
$P record -o tree.plumb --tree \$p --duration 0.8 2>tree.err; echo \$? >tree.rc
$P stack -p \$p >st 2>st.err
$P record --off-cpu -o off.plumb -p \$p --duration 0.3 2>off.err; echo \$? >off.rc
$P trace -p \$p --duration 0.3 >tr.out 2>tr.err; echo \$? >tr.rc
$P kernel --calls -p \$p --duration 0.3 >kc.out 2>kc.err; echo \$? >kc.rc
$P report --sort pid,sym --csv pid.plumb >pid.csv
kill \$p
X
unshare -p -f -m --mount-proc true 2>/dev/null || skip "no PID namespaces here"
unshare -p -f -m --mount-proc sh in.sh >/dev/null 2>&1
chk "command" cmd.plumb cmd.err; chk "-p" pid.plumb pid.err; chk "--tree" tree.plumb tree.err
grep -qE 'part_[ab]' st && grep -q main st && pass "stack -p" || { bad "stack -p"; cat st.err; head -4 st; }
grep -q "$(cat inner.pid)" pid.csv && pass "report --sort pid: the container's number" || { bad "report --sort pid lacks the container's number $(cat inner.pid)"; head -3 pid.csv; }
for x in off tr kc; do rc=$(cat $x.rc); if [ "$rc" != 0 ]; then grep -qiE 'namespace|container' $x.err && pass "$x refused: $(grep -iE -m1 'namespace|container' $x.err | cut -c1-110)" || { bad "$x: status $rc, the reason isn't said"; head -3 $x.err; }; else [ -s $x.plumb ] || [ -s $x.out ] && pass "$x works" || bad "$x: status 0 and no result"; fi; done
# a user namespace: as an ordinary user, or refused in words
cat > in2.sh <<X
$P record -o user.plumb -- ./nsp 35 2>user.err; echo \$? >user.rc
X
unshare -U -r true 2>/dev/null || { note "no user namespaces"; finish; }
unshare -U -r sh in2.sh >/dev/null 2>&1; if [ "$(cat user.rc)" = 0 ]; then chk "user namespace" user.plumb user.err; else grep -qE 'paranoid|CAP_|permi|root' user.err && pass "user namespace refused: $(head -1 user.err | cut -c1-110)" || { bad "user namespace: no reason"; cat user.err; }; fi
finish
