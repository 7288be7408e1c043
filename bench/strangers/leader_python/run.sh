#!/bin/bash
# Python's main thread calls pthread_exit, other Python threads go on: their functions in record -p, --tree, -a and stack
. "$(dirname "$0")/../lib.sh"; root; need python3; cd "$W" || exit 1
cat > t.py <<'Y'
import ctypes, os, sys, threading, time
def py_heavy():
    e = time.thread_time() + 0.03; n = 0
    while time.thread_time() < e:
        for i in range(500): n += i
def py_light():
    e = time.thread_time() + 0.01; n = 0
    while time.thread_time() < e:
        for i in range(500): n += i
def worker():
    while True:
        py_heavy(); py_light()
threading.Thread(target=worker).start()
print(os.getpid(), flush=True)
ctypes.CDLL(None).pthread_exit(None)
Y
timeout 20 python3 t.py >pid 2>perr & kids=$!; filled pid; p=$(cat pid); kids="$kids $p"; sleep 0.5
[ "$(awk '{print $3}' /proc/$p/stat)" = Z ] || skip "this Python's main thread doesn't end"
for how in "-p $p" "--tree $p" "-a"; do f=; [ "$how" = -a ] && f="--pid $p"; $PLUMB record $how -o a.plumb --duration 1.5 2>err
  s=$(share a.plumb 'worker;py_heavy' $f); t=$(share a.plumb 'worker;py_light' $f); within "$s" 65 85 && within "$t" 15 35 && pass "record ${how/$p/PID}: $s%, $t% (true 75, 25)" || { bad "record ${how/$p/PID}: py_heavy $s%, py_light $t% (true 75, 25)"; top3 $f a.plumb; cat err; }; done
$PLUMB stack -p $p >st 2>err; grep -q worker st && pass "stack -p shows worker" || { bad "stack -p lacks Python's functions"; cat err; head -12 st; }
$PLUMB explain -p $p --duration 1 >ex 2>&1; grep -qE 'py_heavy' ex && pass "explain -p" || { bad "explain -p"; head -6 ex; }
kill -9 $p 2>/dev/null; wait 2>/dev/null; finish
