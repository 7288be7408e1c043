#!/bin/bash
# folded stacks in odd clothes: byte order marks, CRLF, UTF-16, gz, zst, xz, lines that begin with { or [ or look like JSON, comments, numbers with fractions, empty lines; the sums are known
. "$(dirname "$0")/../lib.sh"; cd "$W" || exit 1
# t NAME FILE SUM FRAME: read with this sum and this frame, or refused in words with a status
t() { $PLUMB fold "$2" >o 2>err; rc=$?; n=$(awk '{t+=$NF} END{printf "%.0f",t}' o); if [ $rc = 0 ]; then [ "$n" = "$3" ] && grep -qF -- "$4" o && pass "$1: $n" || bad "$1: status 0, sum $n (true $3): $(head -1 o | cut -c1-100)"; elif [ -n "$5" ] && [ -s err ]; then pass "$1: refused: $(head -1 err | cut -c1-90)"; else bad "$1: refused: $(head -1 err | cut -c1-120)"; fi; }
printf 'main;a;b 3\nmain;a;c 4\nmain;d 5\n' >plain; t plain plain 12 'main;a;c'
printf '\xef\xbb\xbfmain;a;b 3\nmain;c 4\n' >bom; t "UTF-8 mark" bom 7 'main;a;b'; $PLUMB fold bom 2>/dev/null | head -c3 | od -An -tx1 | grep -q 'ef bb bf' && bad "the mark is part of a name" || pass "the mark isn't in a name"
printf 'main;a;b 3\r\nmain;c 4\r\n' >crlf; t CRLF crlf 7 'main;c'; $PLUMB report --csv crlf 2>/dev/null | grep -q $'\r' && bad "CR in a name" || pass "no CR in names"
printf '\xef\xbb\xbf{main};x 3\r\n[y];z 4\r\n' >bc; t "mark, CRLF, {" bc 7 '{main};x'
iconv -f utf-8 -t utf-16 plain >u16 2>/dev/null && t "UTF-16" u16 12 'main;a;c' refuse
for z in gzip zstd xz bzip2; do command -v $z >/dev/null && $z -c plain >"plain.$z" && t "$z" "plain.$z" 12 'main;a;c' "$([ $z = bzip2 ] && echo refuse)"; done
printf '{closure}#0;main 3\n{"a"};x 2\n' >brace; t "{closure}, {\"a\"}" brace 5 '{closure}#0;main'
printf '["main",1];x 3\n[1];b 2\n' >arr; t '["main",1];x' arr 5 '["main",1];x'
printf '[] 3\n{} 2\n' >em; t '[] and {}' em 5 '[]'
printf '\n\n   \nmain;a 3\n\nmain;b 4\n\n' >blank; t "empty lines" blank 7 'main;b'
printf 'main;a b c;d 3\nmain;operator new (x);e 4\n' >sp; t "names with spaces" sp 7 'main;a b c;d'
printf 'main;f(int, long);g<a, b> 9\n' >cpp; t "C++ names" cpp 9 'g<a, b>'
printf 'a;b 18446744073709551615\na;c 1\n' >huge; $PLUMB fold huge >o 2>err; rc=$?; [ $rc != 0 ] || ! grep -q -- ' -' o && pass "count of 2^64-1: no negative number (status $rc)" || bad "count of 2^64-1: $(cat o)"
for i in 1 2 3 4 5 6 7 8 9 10; do echo "a;x$i 0.4"; done >frac; $PLUMB report frac >o 2>err; rc=$?; [ $rc = 0 ] && grep -qE 'Samples: +0' o && bad "ten counts of 0.4: $(grep -m1 Samples o) (the sum is 4)" || pass "ten counts of 0.4: status $rc, $(grep -m1 Samples o)"
printf 'a;b -3\na;c 5\n' >neg; $PLUMB report neg >o 2>err; rc=$?; [ $rc != 0 ] || grep -qiE 'decrease|negative|below' o err && pass "negative count: said or refused (status $rc)" || bad "negative count: taken without a word: $(grep Samples o)"
printf 'a;b 3\nthis line has no count\na;c 4\n' >badline; $PLUMB report badline >o 2>err; rc=$?; if [ $rc != 0 ]; then pass "a line without a count: refused"; elif grep -qiE 'damaged|line|skipped|left out' <(grep -v '^#  *All' o | head -8) err; then pass "a line without a count: said"; else bad "a line without a count: no word: $(head -3 o | tail -1)"; fi
printf 'a;b 3 7\na;c 4 9\n' >diffd; $PLUMB report diffd >o 2>err; rc=$?; if [ $rc = 0 ]; then note "difffolded's two columns: $(grep Samples o) $(grep % o | tail -1)"; ! grep -qE '\] b 3|\] c 4' o && pass "difffolded: no number in a name" || bad "difffolded's two columns: the first number is taken for a part of the name"; else pass "difffolded's two columns: refused"; fi
cat plain | $PLUMB fold - 2>/dev/null | awk '{t+=$NF} END{exit t!=12}' && pass "from a pipe" || bad "from a pipe"; gzip -c bom | $PLUMB fold - 2>/dev/null | awk '{t+=$NF} END{exit t!=7}' && pass "gz with mark from a pipe" || bad "gz with mark from a pipe"
gzip -c plain | head -c 20 >cut.gz; $PLUMB fold cut.gz >o 2>err; rc=$?; [ $rc != 0 ] && [ -s err ] && pass "cut gz refused: $(head -1 err | cut -c1-80)" || bad "cut gz: status $rc, $(wc -l <o) stacks and no word"
cat plain bom | gzip -c >two.gz; gzip -c plain >>two.gz; t "gz of several members" two.gz 31 'main;a;c'
finish
