#!/bin/bash
# a Go program calls syscall.Exec from a locked thread that is not the leader, twice in a row: counts of calls and shares afterwards
. "$(dirname "$0")/../lib.sh"; root; need go; cd "$W" || exit 1
cat > main.go <<'G'
package main

import (
	"os"
	"runtime"
	"strconv"
	"syscall"
	"time"
	"unsafe"
)

var sink uint64

func cpu() float64 {
	var t syscall.Timespec
	syscall.Syscall(syscall.SYS_CLOCK_GETTIME, 3, uintptr(unsafe.Pointer(&t)), 0)
	return float64(t.Sec) + float64(t.Nsec)/1e9
}

//go:noinline
func spin(s float64) {
	for e := cpu() + s; cpu() < e; {
		for i := uint64(0); i < 300000; i++ {
			sink += i
		}
	}
}

//go:noinline
func stageOne() { spin(0.3); sink++ }

//go:noinline
func stageTwo() { spin(0.45); sink++ }

//go:noinline
func stageThree() { spin(0.75); sink++ }

func calls(n int) {
	for i := 0; i < n; i++ {
		syscall.RawSyscall(syscall.SYS_GETPPID, 0, 0, 0)
	}
}

func execFromThread(stage int) {
	c := make(chan int)
	go func() {
		runtime.LockOSThread()
		for syscall.Gettid() == syscall.Getpid() {
			time.Sleep(time.Millisecond)
		}
		err := syscall.Exec("/proc/self/exe", []string{os.Args[0], strconv.Itoa(stage)}, os.Environ())
		panic(err)
	}()
	<-c
}

func main() {
	runtime.LockOSThread() // main stays on the leader
	s := 1
	if len(os.Args) > 1 {
		s, _ = strconv.Atoi(os.Args[1])
	}
	runtime.LockOSThread()
	switch s {
	case 1:
		stageOne()
		calls(1000)
		execFromThread(2)
	case 2:
		stageTwo()
		calls(2000)
		execFromThread(3)
	case 3:
		stageThree()
		calls(3000)
	}
}
G
printf 'module x\ngo 1.18\n' >go.mod; export GOFLAGS=-mod=mod GOMAXPROCS=4; go build -o gx . || skip "go build fails"
./gx || skip "the program fails"
for cap in auto perf; do
  $PLUMB record --capture $cap -o a.plumb -- ./gx 2>err || cat err
  for k in "main.stageOne 20" "main.stageTwo 30" "main.stageThree 50"; do set -- $k
    s=$(share a.plumb "main.main;$1"); within "$s" $(($2-6)) $(($2+6)) && pass "$cap: $1 $s% (true $2)" || { bad "$cap: $1 $s% (true $2)"; top3 a.plumb; }; done
  c=$(coverage err); within "$c" 95 105 && pass "$cap: coverage $c%" || { grep -q Warning err && note "coverage $c%: $(grep Warning err | head -1)" || bad "$cap: coverage $c% without a warning"; }
done
$PLUMB kernel --calls --json -- ./gx >k.json 2>err
n=$(pyjson k.json 'sum(c["calls"] for c in j["calls"] if c["name"]=="getppid")'); [ "$n" = 6000 ] && pass "kernel --calls: 6000 getppid" || bad "kernel --calls: '$n' of 6000 getppid"
n=$(pyjson k.json 'sum(c["calls"] for c in j["calls"] if c["name"]=="execve")'); within "$n" 2 3 && pass "kernel --calls: $n execve" || bad "kernel --calls: '$n' execve (true 2, 3 with the command itself)"
$PLUMB trace -e getppid,execve -- ./gx >tr 2>&1; n=$(grep -c 'getppid(' tr); [ $n = 6000 ] && pass "trace: 6000 getppid" || bad "trace: $n of 6000 getppid"
n=$(grep 'execve(' tr | grep -c '"[23]"'); [ $n = 2 ] && pass "trace: both execve" || { bad "trace: $n of 2 execve"; grep execve tr | head -4; }
$PLUMB record -e syscalls:sys_enter_getppid -o t.plumb -- ./gx 2>err; n=$(total t.plumb); near "$n" 6000 2 && pass "tracepoint: $n of 6000" || { bad "tracepoint: $n of 6000"; cat err; }
finish
