#!/bin/bash
# functions without symbols in the store (push, query functions, tree, export) and in the page's API of `plumb serve FILE`: the names of report
. "$(dirname "$0")/../lib.sh"; need gcc python3 curl; cd "$W" || exit 1
cat > p.c <<'C'
#include <time.h>
static volatile unsigned long s;
static double cpu(void){struct timespec t;clock_gettime(CLOCK_PROCESS_CPUTIME_ID,&t);return t.tv_sec+t.tv_nsec*1e-9;}
__attribute__((noinline)) static void sib_a(void){ for(int i=0;i<20000;i++) s+=i; }
__attribute__((noinline)) static void sib_b(void){ for(int i=0;i<20000;i++) s^=i; s++; }
__attribute__((noinline)) static void lot(double d){ double e=cpu()+d; while(cpu()<e) sib_a(); s++; }
__attribute__((noinline)) static void few(double d){ double e=cpu()+d; while(cpu()<e) sib_b(); s+=2; }
int main(void){ for(int i=0;i<10;i++){ lot(0.04); few(0.02); } return 0; }
C
gcc -O2 -fomit-frame-pointer -s -o nsx p.c || exit 2
$PLUMB record -o a.plumb -- ./nsx 2>err; $PLUMB report --json -s dso,sym a.plumb >r.json
python3 - <<'Y'
import json
r=json.load(open("r.json"))["reports"][0]; open("want","w").write("\n".join(y["sym"] for y in r["rows"] if y["self_weight"]>.08*r["kept_weight"])+"\n"); open("wantc","w").write("\n".join(y["sym"] for y in r["rows"] if y["children_weight"]>.08*r["kept_weight"] and y["dso"].endswith("nsx"))+"\n")
Y
note "names: $(tr '\n' ' ' <wantc)"; [ "$(wc -l <want)" = 2 ] && pass "report: two functions by themselves" || bad "report: $(wc -l <want) functions by themselves (true 2): $(tr '\n' ' ' <want)"
srv() { $PLUMB serve "$@" >srv.log 2>&1 & sp=$!; kids="$kids $sp"; U=; for _ in $(seq 100); do U=$(grep -oE 'http://127.0.0.1:[0-9]+[^ ]*' srv.log | head -1); [ -n "$U" ] && break; sleep 0.1; done; U=${U%/}; }
has() { local m=; while read -r n; do grep -qF -- "$n" "$2" || m="$m $n"; done <"$3"; [ -z "$m" ] && [ -s "$2" ] && pass "$1: the same names" || bad "$1 lacks$m: $(head -c 150 "$2")"; }
srv --no-agent --store "$W/st" --listen 127.0.0.1:0
$PLUMB push a.plumb --to "$U" --service nsx >p.out 2>&1 || bad "push: $(tail -1 p.out)"
q() { $PLUMB query "$@" --server "$U" --query '{service_name="nsx"}' --from now-1h; }
q functions --json >f.json 2>err; has "query functions" f.json want; q tree >t.txt 2>err; has "query tree" t.txt wantc; q export -o x.folded --format folded >o 2>err; has "query export folded" x.folded wantc; q export -o x.pb.gz --format pprof.gz >o 2>err; $PLUMB fold x.pb.gz >xf; has "query export pprof" xf wantc; q verdict >v.txt 2>err; has "query verdict" v.txt <(head -1 want)
$PLUMB export -o y.pb.gz a.plumb; $PLUMB push y.pb.gz --to "$U" --service nsy >p.out 2>&1; $PLUMB query functions --json --server "$U" --query '{service_name="nsy"}' --from now-1h >f2.json 2>err; has "push of the pprof file" f2.json want
kill $sp; wait $sp 2>/dev/null
srv --listen 127.0.0.1:0 a.plumb; note "page at $U"; B=$(echo "$U" | grep -oE 'http://[^/]+')
for p in functions tree flame; do curl -s "$B/api/v1/recordings/0/$p" >o.json; case $p in functions) has "page's /$p" o.json want;; *) has "page's /$p" o.json wantc;; esac; done
n=$(head -1 want); curl -sG "$B/api/v1/recordings/0/explain" >o.json; has "page's /explain" o.json want
kill $sp; wait $sp 2>/dev/null; finish
