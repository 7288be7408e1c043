# Makes a large file, sorts it, sums it up and compresses it, each by one program: nothing to mend.
export LC_ALL=C
awk 'BEGIN { s = 1; for (i = 0; i < 400000; i++) { s = (s * 48271) % 2147483647; print s % 1000 "," s } }' >all.csv
sort -t, -k1,1n all.csv >sorted.csv
awk -F, '{ sums[$1] += $2 % 97 } END { for (k in sums) total += sums[k]; print total }' sorted.csv >&2
gzip -6 sorted.csv
