#!/bin/bash
# uprobe, uretprobe and tracepoint programs of another tool with long loops: samples in them belong to the function that was probed
. "$(dirname "$0")/../lib.sh"; root; need gcc python3
CL=$(command -v clang || ls /usr/bin/clang-[0-9]* 2>/dev/null | head -1); [ -n "$CL" ] || skip "no clang here"
cd "$W" || exit 1
cat > zu.c <<'C'
#include <stdio.h>
#include <time.h>
#include <unistd.h>
#include <sys/syscall.h>
static volatile unsigned long s;
static double cpu(void){struct timespec t;clock_gettime(CLOCK_PROCESS_CPUTIME_ID,&t);return t.tv_sec+t.tv_nsec*1e-9;}
__attribute__((noinline)) long zu_probed(long x){ s+=x; return s; }
__attribute__((noinline)) void plain_part(double d){ double e=cpu()+d; while(cpu()<e) for(int i=0;i<50000;i++) s+=i; }
__attribute__((noinline)) void probed_part(double d){ double e=cpu()+d; while(cpu()<e) for(int i=0;i<10;i++) s+=zu_probed(i); }
__attribute__((noinline)) void kernel_part(double d){ double e=cpu()+d; while(cpu()<e) for(int i=0;i<10;i++) syscall(SYS_getuid); }
int main(void){ plain_part(0.4); probed_part(0.6); kernel_part(0.6); FILE*f=fopen("truth","w"); fprintf(f,"%.3f\n",cpu()); return 0; }
C
gcc -O2 -g -fomit-frame-pointer zu.c -o zu || exit 2
cat > b.c <<C
#define SEC(n) __attribute__((section(n),used))
static long (*loop)(unsigned n, void *f, void *c, unsigned long fl) = (void*)181;
static long (*comm)(void *b, unsigned n) = (void*)16;
static long step(unsigned i, void *c){ *(volatile unsigned long*)c += i; return 0; }
SEC("uprobe/$W/zu:zu_probed") int u1(void *ctx){ unsigned long x=0; loop(20000,step,&x,0); return 0; }
SEC("uretprobe/$W/zu:zu_probed") int u2(void *ctx){ unsigned long x=0; loop(10000,step,&x,0); return 0; }
SEC("tp/syscalls/sys_enter_getuid") int f1(void *ctx){ char b[16]; unsigned long x=0; if(comm(b,16)||b[0]!='z'||b[1]!='u') return 0; loop(20000,step,&x,0); return 0; }
char _license[] SEC("license") = "GPL";
C
$CL -O2 -g -target bpf -c b.c -o b.o || skip "clang has no BPF target"
bpfload b.o || skip "programs: $(tail -1 bt; tail -1 bt.err)"
cause() { grep -qiE 'other (tool|program)|BPF program|bpf_prog' "$1"; }
for cap in auto perf; do
  $PLUMB record --capture $cap -o a.plumb -- ./zu 2>err; c=$(coverage err); t=$(cat truth)
  if within "$c" 95 105; then pass "$cap: coverage $c%"
  elif cause err; then pass "$cap: coverage $c%, cause said"; else bad "$cap: coverage $c% without the cause"; cat err; fi
  if ge "$c" 95; then for k in "main;plain_part 25" "main;probed_part 37.5" "main;kernel_part 37.5"; do set -- $k; s=$(share a.plumb "$1"); within "$s" "$(awk -v t=$2 'BEGIN{print t-5}')" "$(awk -v t=$2 'BEGIN{print t+5}')" && pass "$cap: $1 $s% (true $2)" || { bad "$cap: $1 $s% (true $2)"; top3 a.plumb; }; done; fi
done
$PLUMB kernel --json -- ./zu >k.json 2>err; o=$(pyjson k.json 'j["off_percent"]'); within "$o" -6 6 && pass "kernel: table is off by $o% from the kernel's account" || { grep -qi warning err k.json && cause k.json && pass "kernel: off by $o%, cause said" || bad "kernel: off by $o%"; }
finish
