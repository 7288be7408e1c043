#!/bin/bash
# raw tracepoint programs of another tool with a long loop at every system call: coverage near 100%, or the cause said, in record, report, stat, explain, top
. "$(dirname "$0")/../lib.sh"; root; need gcc python3
CL=$(command -v clang || ls /usr/bin/clang-[0-9]* 2>/dev/null | head -1); [ -n "$CL" ] || skip "no clang here"
cd "$W" || exit 1
cat > b.c <<'C'
#define SEC(n) __attribute__((section(n),used))
static long (*loop)(unsigned n, void *f, void *c, unsigned long fl) = (void*)181;
static long (*comm)(void *b, unsigned n) = (void*)16;
static long step(unsigned i, void *c){ *(volatile unsigned long*)c += i; return 0; }
SEC("raw_tp/sys_enter") int enter(void *ctx){ char b[16]; unsigned long x=0; if(comm(b,16)||b[0]!='z'||b[1]!='q') return 0; loop(20000,step,&x,0); return 0; }
SEC("raw_tp/sys_exit") int leave(void *ctx){ char b[16]; unsigned long x=0; if(comm(b,16)||b[0]!='z'||b[1]!='q') return 0; loop(10000,step,&x,0); return 0; }
char _license[] SEC("license") = "GPL";
C
$CL -O2 -g -target bpf -c b.c -o b.o || skip "clang has no BPF target"
bpfload b.o || skip "programs: $(tail -1 bt; tail -1 bt.err)"
cat > zq.c <<'C'
#include <stdio.h>
#include <time.h>
#include <unistd.h>
#include <sys/syscall.h>
static volatile unsigned long s;
static double cpu(void){struct timespec t;clock_gettime(CLOCK_PROCESS_CPUTIME_ID,&t);return t.tv_sec+t.tv_nsec*1e-9;}
__attribute__((noinline)) void user_part(double d){ double e=cpu()+d; while(cpu()<e) for(int i=0;i<50000;i++) s+=i; }
__attribute__((noinline)) void call_part(double d){ double e=cpu()+d; long n=0; while(cpu()<e) { syscall(SYS_getppid); n++; } s+=n; }
int main(void){ user_part(0.5); call_part(1.0); FILE*f=fopen("truth","w"); fprintf(f,"%.3f\n",cpu()); return 0; }
C
gcc -O2 -g zq.c -o zq
cause() { grep -qiE 'other (tool|program)|BPF program|bpf_prog' "$1"; }
for cap in auto perf; do
  $PLUMB record --capture $cap -o a.plumb -- ./zq 2>err; t=$(cat truth); c=$(coverage err)
  if within "$c" 95 105; then pass "$cap: coverage $c%"
    s=$(share a.plumb 'call_part'); within "$s" 61 72 && pass "$cap: call_part $s% (true 66.7)" || { bad "$cap: call_part $s% (true 66.7)"; top3 a.plumb; }
    n=$(total a.plumb --weights); near "$(awk -v n="$n" 'BEGIN{print n/1e9}')" "$t" 6 && pass "$cap: samples are $n ns, the program says $t s" || bad "$cap: samples are $n ns, the program says $t s"
  elif cause err; then pass "$cap: coverage $c%, cause said"; else bad "$cap: coverage $c% without the cause"; cat err; fi
  $PLUMB report a.plumb >rep; within "$c" 95 105 || { cause rep && pass "$cap: report says the cause" || bad "$cap: report of coverage $c% doesn't say the cause"; }
done
$PLUMB explain -- ./zq >ex 2>err; { grep -q call_part ex || cause ex; } && pass "explain names call_part" || { bad "explain: neither call_part nor a cause"; head -5 ex; }
$PLUMB stat -- ./zq >st 2>&1; t=$(cat truth); u=$(grep -oE '[0-9.]+ m?s' st | head -6 | tr '\n' ' '); note "stat: $u; the program says $t s"; grep -qE "$(awk -v t="$t" 'BEGIN{printf "1\\.[4567]"}')" st && pass "stat has the program's 1.5 s" || { bad "stat lacks the program's $t s"; head -12 st; }
$PLUMB top --batch -n 1 -i 2 --rows 0 -- ./zq >tp 2>err; { grep -q call_part tp || cause tp; } && pass "top shows call_part" || { bad "top shows neither call_part nor a cause"; head -8 tp; }
finish
