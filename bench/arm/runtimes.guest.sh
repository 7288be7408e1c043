# In the guest: records the programs of each runtime with both captures, and prints what they measured of themselves and the stacks.
printf '\nKERNEL\t%s\t%s\n' "$(uname -r)" "$(uname -m)"
export PATH=/usr/bin:/bin LD_LIBRARY_PATH=/usr/lib/aarch64-linux-gnu
cd /tmp || exit 2

# one NAME COMMAND...
one() {
    name=$1
    shift
    case " ${only:-$name} " in *" $name "*) ;; *) return ;; esac
    for capture in perf bpf; do
        timeout 300 /bin/plumb record -F "${rate:-499}" --capture $capture -o r.plumb -- "$@" >out 2>err || { echo "FAILED $name"; tail -n 5 err; continue; }
        echo "BEGIN $name $capture"
        grep -E '^plumb:|TRUTH' err
        cat out
        echo STACKS
        /bin/plumb fold r.plumb
        echo "END $name $capture"
    done
}
# The first seconds are for what plumb has to learn of a program.
one python3.13 /usr/bin/bash -c '/usr/bin/python3 -c "import time
while time.process_time() < 4: pass"; exec /usr/bin/python3 /programs/shares.py 2'
one php8.4 /usr/bin/php8.4 -n /programs/shares.php 4
one ruby3.1 /usr/bin/ruby3.1 --disable-gems /programs/shares.rb 4
one ruby3.3 /usr/bin/ruby3.3 --disable-gems /programs/shares.rb 4
one perl5.40 /usr/bin/perl /programs/shares.pl 4
for version in 18 20 22 24; do
    one node$version /usr/bin/bash -c "/opt/node$version --eval 'for (const end = Date.now() + 4000; Date.now() < end;);'; exec /opt/node$version /programs/shares.js 4"
done
for version in 17 21 25; do
    one java$version /usr/lib/jvm/java-$version-openjdk-arm64/bin/java -cp /programs T plain 100000
    one java$version /usr/lib/jvm/java-$version-openjdk-arm64/bin/java -cp /programs T thread 100000
done
one go /usr/bin/bash -c "/programs/go 2; exec /programs/go 6"
