#!/bin/sh
# What sampling itself costs a program with eight busy threads: a fixed amount of work with and without, in turns there
# and back (ABBA), medians. Usage: run.sh [ROUNDS OF TURNS]
set -eu
cd "$(dirname "$0")/../.."
cargo build -q --release -p plumb-sampler
target=${CARGO_TARGET_DIR:-target}
work=$(mktemp -d)
trap 'rm -r "$work"' EXIT
gcc -O2 -fomit-frame-pointer -pthread -o "$work/work" bench/sampler/work.c -Icrates/sampler/include \
    "$target/release/libplumb_sampler.a" -ldl -lm
echo "load before: $(cut -d' ' -f1-3 /proc/loadavg), $(nproc) processors, kernel $(uname -r)"
for _ in $(seq "${1:-10}"); do
    for mode in off timer signal plumb posix copy sleep sleep copy posix plumb signal timer off; do
        "$work/work" $mode 60
    done
done > "$work/results"
echo "load after: $(cut -d' ' -f1-3 /proc/loadavg)"
python3 - "$work/results" <<'END'
import statistics, sys
runs = {}
for line in open(sys.argv[1]):
    mode, cpu, signals, handler, dropped = line.split()
    runs.setdefault(mode, []).append((float(cpu), int(signals), float(handler), int(dropped)))
median = lambda mode, column: statistics.median(run[column] for run in runs[mode])
off = median("off", 0)
print("| | processor time, ms (quartiles) | more than off | signals | µs each | in the handler |")
print("|---|---|---|---|---|---|")
for mode, found in runs.items():
    times = sorted(run[0] for run in found)
    cpu, signals, handler = (median(mode, column) for column in range(3))
    quartiles = f"{times[len(times) // 4]:.0f} to {times[3 * len(times) // 4]:.0f}"
    each = f"{1000 * (cpu - off) / signals:.1f}" if signals else ""
    inside = f"{1000 * handler / signals:.2f} µs, {100 * handler / off:.2f}%" if handler else ""
    print(f"| {mode} | {cpu:.0f} ({quartiles}) | {100 * (cpu / off - 1):+.2f}% | {signals:.0f} | {each} | {inside} |")
print("dropped:", sum(run[3] for run in runs["plumb"]))
END
