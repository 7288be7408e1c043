#!/bin/bash
# what `perf script` prints with other fields (-F), switches, several events, and with a comment before it: all samples, the known shares and stacks, or a refusal in words
. "$(dirname "$0")/../lib.sh"; need gcc perf; cd "$W" || exit 1
cat > p.c <<'C'
#include <time.h>
static volatile unsigned long s;
static double cpu(void){struct timespec t;clock_gettime(CLOCK_PROCESS_CPUTIME_ID,&t);return t.tv_sec+t.tv_nsec*1e-9;}
__attribute__((noinline)) void f_small(double d){ double e=cpu()+d; while(cpu()<e) for(int i=0;i<20000;i++) s+=i; }
__attribute__((noinline)) void f_large(double d){ double e=cpu()+d; while(cpu()<e) for(int i=0;i<20000;i++) s+=i; }
__attribute__((noinline)) void outer(void){ f_small(0.02); f_large(0.06); s++; }
int main(void){ for(int i=0;i<8;i++) outer(); return 0; }
C
gcc -O2 -g -fno-omit-frame-pointer p.c -o 'my prog' || exit 2
perf record -q -g -e cpu-clock -F 997 -o d './my prog' >/dev/null 2>&1 || skip "perf can't record"
perf record -q -e cpu-clock -F 997 -o flat './my prog' >/dev/null 2>&1
N=$(perf script -i d -F time 2>/dev/null | grep -c ':'); F=$(perf script -i flat -F time 2>/dev/null | grep -c ':')
t() { # NAME FILE SAMPLES REGEX LOW HIGH
  $PLUMB report "$2" >r 2>err; rc=$?; m=$(grep -oE 'Samples: +[0-9]+' r | grep -oE '[0-9]+' | head -1); if [ $rc != 0 ]; then [ "$7" = refuse ] && [ -s err ] && pass "$1: refused: $(head -1 err | cut -c1-100)" || bad "$1: refused: $(head -1 err | cut -c1-140)"; return; fi
  s=$(share "$2" "$4"); near "$m" "$3" 2 && within "$s" "$5" "$6" && pass "$1: $m of $3 samples, $4 $s%" || { bad "$1: $m of $3 samples, $4 $s% (true 75)"; grep -m2 '%' r; head -2 "$2" | cut -c1-110; }; }
ps() { perf script -i "$1" "${@:3}" >"$2" 2>/dev/null; [ -s "$2" ]; }
ps d 1.txt && t "default" 1.txt "$N" 'outer;f_large' 68 82
ps d 2.txt -F comm,pid,tid,cpu,time,event,ip,sym,dso && t "pid, tid, cpu; no period" 2.txt "$N" 'outer;f_large' 68 82
ps d 3.txt -F comm,tid,time,ip,sym && t "no event, no dso" 3.txt "$N" 'outer;f_large' 68 82 refuse
ps d 4.txt -F ip,sym && t "ip, sym alone" 4.txt "$N" 'outer;f_large' 68 82 refuse
ps d 6.txt -F comm,tid,time,event,ip,sym,dso --show-mmap-events --show-task-events --show-switch-events && t "with mmap and task events" 6.txt "$N" 'outer;f_large' 68 82
ps d 6b.txt --show-task-events && t "with task events" 6b.txt "$N" 'outer;f_large' 68 82
ps d 7.txt --header && t "--header" 7.txt "$N" 'outer;f_large' 68 82
# where BPF programs run (systemd loads some), the header has lines about each
(grep '^#' 7.txt; for i in $(seq 200); do echo "# bpf_prog_info $i: bpf_prog_6deef7357e7b4530_sd_fw_egress addr 0xffffffffc0026a54 size 639"; done; grep -v '^#' 7.txt) >7b.txt; t "--header with 200 BPF programs" 7b.txt "$N" 'outer;f_large' 68 82
ps d 8.txt --ns && t "--ns" 8.txt "$N" 'outer;f_large' 68 82
ps d 11.txt -F comm,tid,cpu,time,event,sym && t "sym without ip" 11.txt "$N" 'outer;f_large' 68 82 refuse
ps flat f1.txt && t "flat" f1.txt "$F" 'f_large' 68 82
ps flat f2.txt -F comm,tid,time,period,event,ip,sym && t "flat, no dso" f2.txt "$F" 'f_large' 68 82
ps flat f4.txt -F time,ip,sym && t "flat: time, ip, sym" f4.txt "$F" 'f_large' 68 82 refuse
ps flat f6.txt -F comm,tid,time,event && { $PLUMB report f6.txt >r 2>err; rc=$?; [ $rc != 0 ] && pass "no addresses at all: refused: $(head -1 err | cut -c1-90)" || { m=$(grep -oE 'Samples: +[0-9]+' r | grep -oE '[0-9]+' | head -1); near "$m" "$F" 2 && pass "no addresses: $m samples" || bad "no addresses: $m of $F samples"; }; }
(echo '# made by a script'; echo; cat 1.txt) >c.txt; t "a comment before" c.txt "$N" 'outer;f_large' 68 82
sed 's/$/\r/' 1.txt >crlf.txt; t "CRLF" crlf.txt "$N" 'outer;f_large' 68 82; $PLUMB fold crlf.txt 2>/dev/null | grep -q $'\r' && bad "CR in names"
(printf '\xef\xbb\xbf'; cat 1.txt) >bom.txt; t "UTF-8 mark" bom.txt "$N" 'outer;f_large' 68 82
gzip -c 1.txt >1.gz; t "gz" 1.gz "$N" 'outer;f_large' 68 82
head -c $(($(wc -c <1.txt)/2)) 1.txt >half.txt; $PLUMB report half.txt >r 2>err; m=$(grep -oE 'Samples: +[0-9]+' r | grep -oE '[0-9]+' | head -1); near "$m" $((N/2)) 8 && pass "cut in the middle: $m of $((N/2))" || bad "cut in the middle: $m of about $((N/2))"
perf record -q -g -e cpu-clock,page-faults -F 997 -o two './my prog' >/dev/null 2>&1 && ps two t.txt && { $PLUMB report --event cpu-clock t.txt >r 2>err || $PLUMB report t.txt >r 2>&1; grep -qE 'cpu-clock' r && grep -q f_large r && pass "two events" || { bad "two events"; head -4 r; }; }
finish
