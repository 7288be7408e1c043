#!/bin/bash
# CPU samples of two processes with named threads: header, rows, CSV, JSON, fold, export, script, procs, kernel and explain have to say one sum, whatever is filtered
. "$(dirname "$0")/../lib.sh"; need gcc python3; cd "$W" || exit 1
cat > p.c <<'C'
#define _GNU_SOURCE
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>
#include <sys/syscall.h>
static volatile unsigned long s;
static double cpu(void){struct timespec t;clock_gettime(CLOCK_THREAD_CPUTIME_ID,&t);return t.tv_sec+t.tv_nsec*1e-9;}
__attribute__((noinline)) void leaf_a(void){ for(int i=0;i<20000;i++) s+=i; }
__attribute__((noinline)) void leaf_b(void){ for(int i=0;i<20000;i++) s^=i; }
static inline __attribute__((always_inline)) void inl(void){ for(int i=0;i<5000;i++) s+=i*3; }
__attribute__((noinline)) void calls(void){ for(int i=0;i<2000;i++) syscall(SYS_getppid); }
__attribute__((noinline)) void rec(int n){ if(n){ rec(n-1); s++; } else leaf_b(); }
static void *work(void*a){ pthread_setname_np(pthread_self(),a); double e=cpu()+0.4; int k=0; while(cpu()<e){ switch(k++%5){case 0: leaf_a();break; case 1: leaf_b();break; case 2: calls();break; case 3: rec(6);break; default: inl(); inl(); } } return 0; }
int main(int c,char**v){ FILE*f; pthread_t t[2]; pid_t q=fork(); f=fopen(q?"parent.pid":"child.pid","w"); fprintf(f,"%d",getpid()); fclose(f);
  pthread_create(t,0,work,q?"wa":"wc"); pthread_create(t+1,0,work,q?"wb":"w d;x"); pthread_join(t[0],0); pthread_join(t[1],0); if(q) { int st; waitpid(q,&st,0); } return 0; }
C
gcc -O2 -g -fomit-frame-pointer p.c -o two -lpthread || exit 2
$PLUMB record --timeline -o a.plumb -- ./two 2>err || { bad "record: $(head -1 err)"; finish; }
one() { python3 "$here/../sums.py" "$PLUMB" a.plumb "$@" || fail=1; }
one cpu-clock; one cpu-clock --comm wa; one cpu-clock --comm 'w d;x'; one cpu-clock --pid "$(cat child.pid)"; one cpu-clock --time 0.3-0.7; one cpu-clock --focus leaf_a; one cpu-clock --ignore 'leaf_a|getppid'; one cpu-clock --kernel
n() { $PLUMB report --json "$@" a.plumb | python3 -c 'import json,sys; r=json.load(sys.stdin)["reports"]; print(r[0]["kept_samples"] if r else 0)'; }
all=$(n); a=$(n --focus leaf_b); b=$(n --ignore leaf_b); [ $((a+b)) = "$all" ] && pass "--focus and --ignore of the same: $a + $b = $all" || bad "--focus $a and --ignore $b are not $all"
a=$(n --user); b=$(n --kernel); [ $((a+b)) = "$all" ] && pass "--user and --kernel: $a + $b" || bad "--user $a and --kernel $b are not $all"
a=$(n --time 0-0.5); b=$(n --time 0.5-); [ $((a+b)) = "$all" ] && pass "--time halves: $a + $b" || bad "--time 0-0.5 $a and 0.5- $b are not $all"
a=$(n --pid "$(cat child.pid)"); b=$(n --pid "$(cat parent.pid)"); within $((a+b)) $((all*90/100)) "$all" && pass "both processes: $a + $b of $all" || bad "processes $a + $b of $all"
h=$($PLUMB report --json --hide leaf_b a.plumb | python3 -c 'import json,sys; r=json.load(sys.stdin)["reports"][0]; print(sum(x["self_samples"] for x in r["rows"]))'); [ "$h" = "$all" ] && pass "--hide keeps $h" || bad "--hide: $h of $all"
finish
