# In the guest: 1,000 short processes alone, with plumb and with perf beside it, in turns. Prints what each says of its coverage.
printf '\nKERNEL\t%s\t%s\n' "$(uname -r)" "$(uname -m)"
export PATH=/usr/bin:/bin LD_LIBRARY_PATH=/usr/lib/aarch64-linux-gnu HOME=/root TIMEFORMAT='%R real %U user %S sys'
cd /tmp
cat >many.sh <<'S'
for ((i = 0; i < 1000; i++)); do /bin/work nothing; done
times
S
for _ in 1 2 3; do
echo "alone:"; time bash many.sh
echo "plumb default:"; /bin/plumb record -o a.plumb -- bash many.sh 2>&1 | cat; 
echo "plumb capture perf:"; /bin/plumb record --capture perf -o a.plumb -- bash many.sh 2>&1 | cat
echo "plumb -F 49:"; /bin/plumb record -F 49 -o a.plumb -- bash many.sh 2>&1 | cat
echo "perf cpu-clock -F 999:"; perf record -o p.data -F 999 -e cpu-clock -- bash many.sh 2>&1 | cat; perf script -i p.data -F period,comm 2>/dev/null | awk '{ n++; s += $(NF) } END { print n, s / 1e9 }'
echo "perf cpu-clock -F 999 -g:"; perf record -o p.data -F 999 -g -e cpu-clock -- bash many.sh 2>&1 | cat; perf script -i p.data -F period,comm -G 2>/dev/null | awk 'NF { n++; s += $(NF) } END { print n, s / 1e9 }'
echo "perf cycles -F 999:"; perf record -o p.data -F 999 -e cycles -- bash many.sh 2>&1 | cat; perf script -i p.data -F period,comm 2>/dev/null | awk '{ n++; s += $(NF) } END { print n, s / 1e9 }'
cat /proc/sys/kernel/perf_event_max_sample_rate
done
dmesg | grep -i perf | tail
