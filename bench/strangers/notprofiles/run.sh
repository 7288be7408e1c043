#!/bin/bash
# files that are no profiles: /proc, logs, JSON, CSV, XML, ELF, pictures, empty and cut files. Each has to be refused with a status and a word, never read as stacks
. "$(dirname "$0")/../lib.sh"; need gcc; cd "$W" || exit 1
r() { # NAME FILE
  timeout 20 $PLUMB report "$2" >o 2>err </dev/null; rc=$?; if [ $rc = 124 ]; then bad "$1: hangs"; elif [ $rc -ge 128 ]; then bad "$1: killed, status $rc: $(head -1 err)"; elif [ $rc = 0 ]; then bad "$1: status 0: $(grep -m1 -E 'Samples|Warning' o | cut -c1-90) $(grep -m1 '%.*\[' o | cut -c1-60)"; elif ! [ -s err ]; then bad "$1: status $rc and no word"; else pass "$1: $(head -1 err | cut -c1-100)"; fi; }
e() { # an empty profile of a real format: refused, or said to have no samples
  $PLUMB report "$2" >o 2>err; rc=$?; [ $rc != 0 ] && [ -s err ] || grep -qE 'Samples: +0|no samples' o && pass "$1: $(cat err o | grep -m1 . | cut -c1-80)" || bad "$1: status $rc: $(head -3 o | tail -1)"; }
for f in stat meminfo vmstat interrupts cpuinfo mounts diskstats modules iomem buddyinfo zoneinfo slabinfo loadavg uptime version filesystems swaps schedstat; do cat /proc/$f >"p.$f" 2>/dev/null; [ -s p.$f ] && r "/proc/$f" p.$f; done
for f in maps smaps stat status limits io sched mountinfo statm; do cat /proc/self/$f >"s.$f" 2>/dev/null; [ -s s.$f ] && r "/proc/self/$f" s.$f; done
head -300 /proc/kallsyms >kallsyms; r kallsyms kallsyms; cp /proc/net/dev net.dev; r /proc/net/dev net.dev; cp /proc/net/tcp net.tcp; r /proc/net/tcp net.tcp
echo '{"name":"x","version":"1.0.0","dependencies":{"a":"^1"}}' >package.json; r "package.json" package.json
echo '[1,2,3]' >a.json; r "array of numbers" a.json; echo '[]' >b.json; r "empty array" b.json; echo '{}' >c.json; r "empty object" c.json; echo 'null' >n.json; r null n.json; echo '"text 5"' >t.json; r "a JSON text" t.json
printf '{"level":"info","msg":"started 3"}\n{"level":"info","msg":"ended 4"}\n' >log.jsonl; r "JSON lines of a log" log.jsonl
echo '{"type":"FeatureCollection","features":[{"type":"Feature","geometry":{"type":"Point","coordinates":[1,2]}}]}' >geo.json; r GeoJSON geo.json
echo '{"nodes":[{"id":1}],"samples":[1]}' >half.cpuprofile; r "half a cpuprofile" half.cpuprofile; echo '{"traceEvents":[]}' >te.json; e "trace without events" te.json; echo '{"profiles":[],"shared":{"frames":[]}}' >ss.json; e "speedscope without profiles" ss.json; echo '{"meta":{},"threads":[]}' >ff.json; e "firefox without threads" ff.json
printf '[{"name":"x","value":3},{"name":"y","value":4}]\n' >arr.json; r "array of objects" arr.json
printf 'name,value\na,3\nb,4\n' >x.csv; r CSV x.csv; printf 'name value\na 3\nb 4\n' >x.ssv; note "'a 3' lines: status $($PLUMB report x.ssv >/dev/null 2>&1; echo $?) (may be folded stacks of one frame)"
printf '<?xml version="1.0"?>\n<a><b c="1"/> 5</a>\n' >x.xml; r XML x.xml; printf '<!DOCTYPE html>\n<p>total 5\n' >x.html; r HTML x.html; printf '%%PDF-1.4\n1 0 obj 5\n' >x.pdf; r PDF x.pdf; printf '\x89PNG\r\n\x1a\n\0\0\0\rIHDR\0\0' >x.png; r PNG x.png
printf 'Nov 28 14:00:01 host sshd[123]: Accepted publickey for root from 10.0.0.1 port 22\nNov 28 14:00:02 host cron[9]: job 5\n' >syslog; r syslog syslog; printf '127.0.0.1 - - [28/Nov/2026:14:00:01 +0000] "GET / HTTP/1.1" 200 612\n127.0.0.1 - - [28/Nov/2026:14:00:02 +0000] "GET /x;y HTTP/1.1" 404 9\n' >access.log; r "access log" access.log
printf 'total 8\n-rw-r--r-- 1 root root 12 Nov 28 14:00 a;b\n' >ls.txt; r "ls -l" ls.txt; printf '  PID TTY          TIME CMD\n    1 ?        00:00:02 init\n' >ps.txt; r ps ps.txt; (uptime; df) >df.txt 2>/dev/null; r "uptime, df" df.txt
printf '10 main.c\n20 b.c\n30 total\n' >wc.txt; r "wc -l" wc.txt; printf '# comment\nint main(void) { return 0; }\nint x = 5;\n' >x.c; r "C source" x.c; printf 'import os;\nfor (i = 0; i < 5; i++) 3\n' >y.txt; note "code that ends in a number: status $($PLUMB report y.txt >/dev/null 2>&1; echo $?)"
printf 'key = 5\n[section]\nother = 7\n' >x.ini; r ini x.ini; printf 'a: 1\nb:\n  - 2\n' >x.yml; r yaml x.yml; printf 'commit 0123456789abcdef0123456789abcdef01234567\nAuthor: A <a@b>\nDate: Sat Nov 28 2026\n' >git.txt; r "git log" git.txt
: >empty; r "empty file" empty; printf '\n\n' >nl; r "line breaks only" nl; printf '\xef\xbb\xbf' >bom; r "mark only" bom; head -c 4096 /dev/zero >zero; r zeros zero; head -c 4096 /dev/urandom >rnd; r "random bytes" rnd; gzip -c </dev/null >e.gz; r "gz of nothing" e.gz; gzip -c empty | gzip -c >ee.gz; r "gz of gz of nothing" ee.gz; head -c 3000 /bin/true >elf; r "ELF" elf; mkdir dir; r directory dir; r "no such file" nosuch; r /dev/null /dev/null
# cut files of real formats: read with a word about it, or refused; never a crash and never silence
cat > p.c <<'C'
int main(void){ volatile unsigned long s=0; for(unsigned long i=0;i<500000000UL;i++) s+=i; return 0; }
C
gcc -O1 -g p.c -o p; $PLUMB record -q -o a.plumb -- ./p 2>/dev/null
k() { n=$(wc -c <"$1"); for q in 5 60; do head -c $((n*q/100)) "$1" >"cut$q-$1"; timeout 20 $PLUMB report "cut$q-$1" >o 2>err; rc=$?; if [ $rc -ge 124 ]; then bad "$1 cut at $q%: status $rc"; elif [ $rc != 0 ]; then [ -s err ] && pass "$1 cut at $q%: refused: $(head -1 err | cut -c1-80)" || bad "$1 cut at $q%: no word"; elif grep -qiE 'cut|truncat|damaged [^0]|incomplete|ends|missing|lack|[1-9][0-9]* damaged' <(head -12 o) err; then pass "$1 cut at $q%: said"; else bad "$1 cut at $q%: status 0 without a word: $(grep -m1 Samples o | cut -c1-100)"; fi; done; }
k a.plumb; for x in b.pb.gz b.firefox.json b.speedscope.json b.trace.json.gz b.otlp; do $PLUMB export -o $x a.plumb 2>/dev/null; [ $x = b.otlp ] || k $x; done
command -v perf >/dev/null && { perf record -q -g -e cpu-clock -o b.perf.data ./p >/dev/null 2>&1; k b.perf.data; }
finish
