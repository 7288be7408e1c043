#!/usr/bin/env python3
"""What plumb's agent costs, beside OpenTelemetry's eBPF profiler, under the same load: processor time in user space and of BPF programs, and memory.

    cost.py --plumb target/release/plumb [--profiler EBPF_PROFILER] [--load compile|rust|deep|idle] [--seconds 120] [--warm 60]
            [--without-btf] [--switch=--page-faults]...

Each runs alone, one after the other, at 97 Hz: `plumb agent` sends to a `plumb serve` of its own, the other to an address where a server of plumb listens
too. Measured from WARM seconds after the start on; the peak of memory is of the whole time. Root.
Roots: the share of samples whose outermost function begins a program or a thread, or is the kernel's, as the same server names them for both; the agent has put the files
there before. Maps: what BPF maps take in the kernel, which is in nobody's resident memory. For the profiler tracefs has to be mounted.
compile: two compilers, again and again. rust: the same with rustc, two libraries of which have 16 MB of unwind information. deep: a program 60 calls deep. idle: 300 sleeping processes.
Without BTF (hidden by a mount) the agent has no BPF programs, and stacks are copied. A switch is one for the agent; one is --max-cpu=100%, where its cost at 97 Hz is wanted.
"""
import argparse, json, os, signal, subprocess, sys, tempfile, time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), '..', 'store'))
from server import Server

CPU = 'process_cpu:cpu:nanoseconds:cpu:nanoseconds'
COMPILE = ["while :; do echo 'int f(int x){return x*x;} int main(int c,char**v){return f(c);}' | gcc -O1 -c -o /dev/null -x c -; done",
           "while :; do printf '#include <vector>\\n#include <string>\\nint main(){std::vector<std::string> v; v.push_back(\"a\"); return v.size();}' | g++ -O1 -c -o /dev/null -x c++ -; done"]
RUST = 'use std::collections::*; pub fn f(v: &[String]) -> BTreeMap<String, Vec<usize>> { let mut m = BTreeMap::new(); for (i, s) in v.iter().enumerate() { m.entry(s.clone()).or_insert_with(Vec::new).push(i); } m }'
DEEP = '''
#include <map>
#include <string>
std::map<std::string, int> m;
__attribute__((noinline)) int deep(int n) { if (n) return deep(n - 1) + (n & 1); int s = 0; for (int i = 0; i < 200; i++) s += m[std::to_string(i)]++; return s; }
int main() { for (;;) deep(60); }
'''

def load(kind, folder):
    if kind == 'compile':
        return [subprocess.Popen(['bash', '-c', one], start_new_session=True, stderr=subprocess.DEVNULL) for one in COMPILE]
    if kind == 'rust':
        open(os.path.join(folder, 'one.rs'), 'w').write(RUST)
        loop = 'while :; do rustc --crate-type lib -O -o {0}/{1}.rlib {0}/one.rs; done'
        return [subprocess.Popen(['bash', '-c', loop.format(folder, number)], start_new_session=True, stderr=subprocess.DEVNULL) for number in (1, 2)]
    if kind == 'idle':
        return [subprocess.Popen(['sleep', '100000'], start_new_session=True) for _ in range(300)]
    source = os.path.join(folder, 'deep.cpp')
    open(source, 'w').write(DEEP)
    program = os.path.join(folder, 'deep')
    subprocess.run(['g++', '-O2', '-fno-optimize-sibling-calls', '-o', program, source], check=True)
    return [subprocess.Popen([program], start_new_session=True) for _ in range(os.cpu_count())]

def of_descriptors(pid, kind, key):
    """By number, what the kernel says of the BPF programs (prog) or maps (map) that a process has open: others may run an agent too."""
    found = {}
    for descriptor in os.listdir(f'/proc/{pid}/fdinfo'):
        try:
            facts = dict(line.split(':', 1) for line in open(f'/proc/{pid}/fdinfo/{descriptor}') if ':' in line)
        except OSError:
            continue
        if kind + '_id' in facts:
            found[int(facts[kind + '_id'])] = int(facts.get(key, 0))
    return found

def bpf_seconds(pid):
    return sum(of_descriptors(pid, 'prog', 'run_time_ns').values()) / 1e9

def cpu_seconds(pid):
    """By the process's own clock (clock_getcpuclockid(3)): ticks miss most of what takes a fraction of a millisecond."""
    return time.clock_gettime(~pid << 3 | 2)

# Where stacks of programs and threads begin, of the kernel's threads and of what it does for interrupts.
ROOTS = {'_start', '__clone', '__clone3', 'clone', 'clone3', '_dl_start', '_dl_start_user', '_dl_relocate_object', 'ret_from_fork_asm', 'ret_from_fork', 'entry_SYSCALL_64_after_hwframe',
         'entry_SYSCALL_64', 'asm_exc_page_fault', 'asm_sysvec_apic_timer_interrupt', 'runtime.goexit', 'runtime.mstart', 'runtime.rt0_go', 'runtime.mcall', 'runtime.morestack', '__libc_start_call_main'}

def roots(server, begin, end):
    """The share of the samples of a time whose stack is whole, and the roots of most of the others."""
    status, text = server.get(f'/api/v1/export?from={int(begin * 1000)}&until={int(end * 1000)}&format=folded&type=' + CPU)
    if status != 200:
        return f'no stacks: {text[:200]}'
    whole, others = 0, {}
    for line in text.decode(errors='replace').splitlines():
        stack, _, value = line.rpartition(' ')
        root = stack.split(';')[0]
        if root in ROOTS:
            whole += int(value)
        else:
            others[root] = others.get(root, 0) + int(value)
    total = max(whole + sum(others.values()), 1)
    most = ', '.join(f'{root} {value / total:.1%}' for root, value in sorted(others.items(), key=lambda one: -one[1])[:4])
    return f'roots {whole / total:.2%} of {total / 1e9:.1f} s; otherwise {most}'

def maps(pid):
    """Memory of its BPF maps, in MB. Maps that are only in other maps are in none of its descriptors."""
    return sum(of_descriptors(pid, 'map', 'memlock').values()) / 1e6

def memory(pid, key):
    return int(open(f'/proc/{pid}/status').read().split(key + ':')[1].split()[0]) / 1024

def measure(name, command, options, log, server):
    process = subprocess.Popen(command, stdout=log, stderr=log)
    time.sleep(options.warm)
    begin, cpu, bpf = time.time(), cpu_seconds(process.pid), bpf_seconds(process.pid)
    time.sleep(options.seconds)
    passed = (time.time() - begin) * os.cpu_count() / 100
    cpu, bpf = (cpu_seconds(process.pid) - cpu) / passed, (bpf_seconds(process.pid) - bpf) / passed
    print(f'{name:16} user space {cpu:6.3f}%  BPF {bpf:6.3f}%  together {cpu + bpf:6.3f}% of the machine; memory {memory(process.pid, "VmRSS"):4.0f} MB, peak {memory(process.pid, "VmHWM"):4.0f} MB, maps {maps(process.pid):4.0f} MB', flush=True)
    end = time.time()
    process.send_signal(signal.SIGINT)
    process.wait()
    time.sleep(1)
    print(f'{name:16} {roots(server, begin, end)}', flush=True)
    return cpu + bpf

def main():
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument('--plumb', default='target/release/plumb')
    options.add_argument('--profiler')
    options.add_argument('--load', choices=['compile', 'rust', 'deep', 'idle'], default='compile')
    options.add_argument('--seconds', type=int, default=120)
    options.add_argument('--warm', type=int, default=60)
    options.add_argument('--without-btf', action='store_true')
    options.add_argument('--switch', action='append', default=[])
    options = options.parse_args()
    subprocess.run(['sysctl', '-q', '-w', 'kernel.bpf_stats_enabled=1'], check=True)
    with tempfile.TemporaryDirectory() as folder:
        plumb, log = os.path.abspath(options.plumb), open(os.path.join(folder, 'log'), 'wb')
        server = Server(plumb, os.path.join(folder, 'store'))
        running = load(options.load, folder)
        try:
            print(f'load {options.load}, {options.seconds} s after {options.warm} s, 97 Hz')
            hidden = ['unshare', '-m', 'sh', '-c', 'mount --bind /dev/null /sys/kernel/btf/vmlinux && exec "$@"', 'sh'] if options.without_btf else []
            agent = [plumb, 'agent', '--to', f'http://127.0.0.1:{server.port}', '--spool', os.path.join(folder, 'spool'), *options.switch]
            ours = measure('plumb agent', hidden + agent, options, log, server)
            if options.profiler:
                theirs = measure('OpenTelemetry', [options.profiler, '-collection-agent', f'127.0.0.1:{server.port}', '-disable-tls', '-samples-per-second', '97'], options, log, server)
                print(f'ratio {ours / theirs:.2f}')
        finally:
            for one in running:
                os.killpg(one.pid, signal.SIGKILL)
            server.stop()
            subprocess.run(['sysctl', '-q', '-w', 'kernel.bpf_stats_enabled=0'])

main()
