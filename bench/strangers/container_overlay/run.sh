#!/bin/bash
# an overlay as root directory, its executable and library deleted or replaced after the start, the host has others of the same paths; debug files by the container's own /usr/lib/debug
. "$(dirname "$0")/../lib.sh"; root; need unshare gcc objcopy; cd "$W" || exit 1
unshare -m true 2>/dev/null || skip "no namespaces here"
A=ovcase$$; case_cleanup() { rm -rf "/$A"; }
mkdir -p low/lib/x86_64-linux-gnu low/lib64 low/$A low/usr/lib/debug/.build-id low/proc up work root
cp /lib/x86_64-linux-gnu/libc.so.6 low/lib/x86_64-linux-gnu/; cp /lib64/ld-linux-x86-64.so.2 low/lib64/
cat > l.c <<'C'
#include <time.h>
static volatile unsigned long s;
static double cpu(void){struct timespec t;clock_gettime(CLOCK_PROCESS_CPUTIME_ID,&t);return t.tv_sec+t.tv_nsec*1e-9;}
static __attribute__((noinline)) void LEAF(int n){ for(int i=0;i<n;i++) s+=i; }
__attribute__((noinline)) void lib_work(double d){ volatile char p[99]; p[0]=1; double e=cpu()+d; while(cpu()<e) LEAF(50000); s+=p[0]; }
C
cat > p.c <<'C'
#include <stdlib.h>
void lib_work(double); static volatile int k;
static __attribute__((noinline)) void CALLER(double d){ volatile char p[55]; p[0]=1; lib_work(d); k+=p[0]; }
int main(int c,char**v){ CALLER(atof(v[1])); k++; return 0; }
C
mk() { # DIR LEAF CALLER
  gcc -O2 -g -fPIC -shared -Wl,--build-id=sha1 -DLEAF=$2 l.c -o $1/libov.so && gcc -O2 -g -Wl,--build-id=sha1 -DCALLER=$3 p.c -o $1/ovprog -L$1 -lov -Wl,-rpath,/$A; }
mkdir right wrong "/$A"; mk right right_leaf right_caller; mk wrong WRONG_leaf WRONG_caller; cp wrong/* "/$A/"
for f in libov.so ovprog; do id=$(readelf -n right/$f | awk '/Build ID/{print $3}'); mkdir -p low/usr/lib/debug/.build-id/${id:0:2}; objcopy --only-keep-debug right/$f low/usr/lib/debug/.build-id/${id:0:2}/${id:2}.debug; strip right/$f -o low/$A/$f; done
cat > in.sh <<X
mount -t tmpfs t $W/over && mkdir $W/over/u $W/over/w && mount -t overlay o -o lowerdir=$W/low,upperdir=$W/over/u,workdir=$W/over/w $W/root || exit 77
case \$1 in
plain) exec chroot $W/root /$A/ovprog \$2 ;;
deleted) chroot $W/root /$A/ovprog \$2 & sleep 0.2; rm $W/root/$A/ovprog $W/root/$A/libov.so; wait ;;
replaced) chroot $W/root /$A/ovprog \$2 & sleep 0.2; cp $W/wrong/ovprog $W/root/$A/new1; cp $W/wrong/libov.so $W/root/$A/new2; mv $W/root/$A/new1 $W/root/$A/ovprog; mv $W/root/$A/new2 $W/root/$A/libov.so; wait ;;
esac
X
U="unshare -m --propagation private sh in.sh"; $U plain 0.01; [ $? = 77 ] && skip "no overlay here"
chk() { s=$(share a.plumb 'main;right_caller[a-z.0-9]*;lib_work;right_leaf' --comm ovprog); w=$(share a.plumb WRONG); ge "$s" 90 && [ "$w" = 0.0 ] && pass "$1: $s%" || { bad "$1: $s% right, $w% by the host's file"; top3 --comm ovprog a.plumb; sed -n 2,5p err; }; }
for cap in bpf perf; do for m in deleted replaced; do $PLUMB record --capture $cap -o a.plumb -- $U $m 0.6 2>err; chk "$cap, $m"; done; done
for m in deleted replaced; do $U $m 6 & u=$!; kids=$u; sleep 1; p=$(pgrep -x ovprog | tail -1); kids="$kids $p"; $PLUMB record -o a.plumb -p "$p" --duration 0.7 2>err; chk "-p, $m before"
  $PLUMB stack -p "$p" >st 2>&1; grep -q right_caller st && ! grep -q WRONG st && pass "stack, $m" || { bad "stack, $m"; head -8 st; }
  kill $p; wait $u 2>/dev/null; done
finish
