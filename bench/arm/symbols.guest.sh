# In the guest: records each program, and prints its recording as base64 between lines BEGIN and END.
printf '\nKERNEL\t%s\t%s\n' "$(uname -r)" "$(uname -m)"
export PATH=/usr/bin:/bin LD_LIBRARY_PATH=/usr/lib/aarch64-linux-gnu
cd /tmp || exit 2
sqlite='WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 60000) SELECT sum(i * i % 7) FROM (SELECT i FROM n ORDER BY i % 1000, i);'
perl='for (1 .. 40000) { $h{$_ % 700} .= chr(97 + $_ % 26); } print scalar grep { /abc/ } values %h'
bash='for ((i = 0; i < 12000; i++)); do a[i % 50]=$((i * i)); [[ $i == *7 ]] && s=${s:0:20}$i; done; true'
python='d = {}
for i in range(120000): d[i % 900] = str(i) + d.get(i % 700, "")[:5]
print(sorted(d.values())[0])'
awk '{ while (n++ < 30000) print n * 7919 % 100003, "word" n % 97 }' /init >/tmp/lines 2>/dev/null
head -n 30000 /tmp/lines >/tmp/text; head -c 3000000 /usr/bin/perl >/tmp/data
mkdir /tmp/many; for i in $(seq 300); do echo "$i" >"/tmp/many/file$i"; done

# one NAME COMMAND...
one() {
    name=$1
    shift
    timeout 120 /bin/plumb record -q -F 1999 -o "/tmp/$name.plumb" -- "$@" >/dev/null 2>"/tmp/$name.err" || { echo "FAILED $name"; tail -n 3 "/tmp/$name.err"; return; }
    echo "BEGIN $name"
    base64 "/tmp/$name.plumb"
    echo "END $name"
    rm -f "/tmp/$name.plumb"
}
one ls /usr/bin/bash -c 'for i in 1 2 3 4; do /usr/bin/ls -lR /usr/lib /usr/bin /tmp; done'
one sort /usr/bin/sort -k2,2 -k1,1n /tmp/text
one gzip /usr/bin/gzip -9c /tmp/data
one bzip2 /usr/bin/bzip2 -c /tmp/data
one xz /usr/bin/xz -2c /tmp/data
one tar /usr/bin/tar cf /tmp/all.tar /usr/lib/python3.13 /tmp/many
one openssl /usr/bin/openssl speed -seconds 1 -bytes 1024 md5 sha256 rsa1024
one sqlite3 /usr/bin/sqlite3 :memory: "$sqlite"
one perl /usr/bin/perl -e "$perl"
one bash /usr/bin/bash -c "$bash"
one python3 /usr/bin/python3 -I -S -c "$python"
one deep-O2 /programs/deep-O2 300
one loops-O3 /programs/loops-O3 60
one loops-Os /programs/loops-Os 60
one slow-O2 /programs/slow-O2
one slow-O3 /programs/slow-O3
# shellcheck disable=SC2046
one inline-lto /programs/inline-lto $(seq 300)
one recur-O2 /programs/recur-O2 4
[ ! -x /programs/recur-clang ] || one recur-clang /programs/recur-clang 4
one rust-O3 /programs/rust-O3 25
one rust-lto /programs/rust-lto 25
[ ! -x /programs/go ] || one go /programs/go 3
