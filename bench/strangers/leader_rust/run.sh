#!/bin/bash
# leaders that are gone in programs of Rust and Go (a bare exit call of the first thread): -p, --tree, --name, stack, top
. "$(dirname "$0")/../lib.sh"; root; cd "$W" || exit 1; command -v rustc >/dev/null || command -v go >/dev/null || skip "neither rustc nor go here"
cat > r.rs <<'R'
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
extern "C" { fn syscall(n: i64, ...) -> i64; }
static S: AtomicU64 = AtomicU64::new(0);
#[inline(never)] fn rust_leaf() { for i in 0..200u64 { S.fetch_add(i, Relaxed); } }
#[inline(never)] fn rust_outer() { let mut a = [1u8; 300]; std::hint::black_box(&mut a); for _ in 0..1000 { rust_leaf(); } std::hint::black_box(&mut a); }
fn main() {
    std::thread::Builder::new().name("rworker".into()).spawn(|| loop { rust_outer(); }).unwrap();
    println!("{}", std::process::id());
    unsafe { syscall(60, 0i64); } // ends this thread only
}
R
cat > main.go <<'G'
package main

import (
	"fmt"
	"os"
	"runtime"
	"syscall"
)

var sink uint64

//go:noinline
func goLeaf(n uint64) {
	for i := uint64(0); i < n; i++ {
		sink += i
	}
}

//go:noinline
func goOuter() {
	for i := 0; i < 100; i++ {
		goLeaf(100000)
	}
}

func init() { runtime.LockOSThread() }

func main() {
	go func() {
		runtime.LockOSThread()
		for {
			goOuter()
		}
	}()
	runtime.Gosched()
	fmt.Println(os.Getpid())
	syscall.RawSyscall(syscall.SYS_EXIT, 0, 0, 0) // ends this thread only
}
G
one() { # NAME STACK
  ./$1 >pid & p=$!; kids="$kids $p"; filled pid; sleep 0.3; st=$(awk '{print $3}' /proc/$p/stat); [ "$st" = Z ] || note "$1: leader is $st"
  for how in "-p $p" "--capture perf -p $p" "--tree $p" "--name $1"; do $PLUMB record $how -o a.plumb --duration 0.8 2>err; s=$(share a.plumb "$2"); ge "$s" 90 && pass "$1: record ${how/$p/PID}: $s%" || { bad "$1: record ${how/$p/PID}: $s% (true 100)"; top3 a.plumb; sed -n 1,4p err; }; done
  $PLUMB stack -p $p >st 2>err; grep -q "${2##*;}" st || grep -q "$3" st && pass "$1: stack -p" || { bad "$1: stack -p"; cat err; head -8 st; }
  $PLUMB report --sort exe,sym --no-children --csv a.plumb | grep -q "/$1," && pass "$1: the executable is known" || { bad "$1: report --sort exe,sym lacks the executable"; $PLUMB report --sort exe,sym --no-children --csv a.plumb | head -3; }
  timeout 20 $PLUMB top --batch -n 1 -p $p >tp 2>&1; grep -q "${2##*;}" tp && pass "$1: top" || { bad "$1: top"; head -8 tp; }
  kill -9 $p; wait $p 2>/dev/null; rm -f pid; }
if command -v rustc >/dev/null && rustc -O -g r.rs -o rx 2>/dev/null; then one rx 'rust_outer;.*rust_leaf' rust_outer; else note "no rustc"; fi
if command -v go >/dev/null; then printf 'module x\ngo 1.18\n' >go.mod; if go build -o gx . ; then one gx 'goOuter;main.goLeaf' goOuter; fi; else note "no go"; fi
finish
