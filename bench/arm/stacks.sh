#!/bin/bash
# Shares of whole stacks on an emulated arm64 machine: perf by DWARF and by frame pointers, and plumb with both captures, on the same programs. Prints Markdown.
#   bench/arm/stacks.sh [KERNEL]    a kernel of xtask/kernels/boot.sh [6.12-arm64]; five minutes once plumb is built for aarch64
# A stack is whole if the function that every sample is below is in it (main, Py_BytesMain), and its outermost frame is in the program's first function,
# which is told by its address. Frame pointers lead past functions that have none. Stacks of the dynamic linker are left out. perf asks for the length of vectors where the
# processor has any (SVE), which software clocks refuse, so that it samples cycles for DWARF. perf and libraries are Debian's (trixie). WORK: where packages are kept. PLUMB: the command, if it is built already.
set -eu
cd "$(dirname "$0")/../.."
work=${WORK:-${TMPDIR:-/tmp}/plumb-kernels} architecture=arm64
root=$work/perf-arm64
mkdir -p "$work"
. xtask/cargo.sh
. xtask/kernels/packages.sh
builds_for aarch64 static
plumb=${PLUMB:-}
if [ -z "$plumb" ]; then
    cargo build --quiet -p plumb --target "$target"
    plumb=${CARGO_TARGET_DIR:-target}/$target/debug/plumb
fi

if [ ! -d "$root" ]; then
    ask_others apt-cache "${others[@]}" show linux-perf
    packages=(linux-perf libbabeltrace1 libdw1t64 libelf1t64 liblzma5 libnuma1 libopencsd1 libperl5.40 libpython3.13 libslang2 libstdc++6
        libtraceevent1 libunwind8 libzstd1 zlib1g libgcc-s1 libc6 libbz2-1.0 libcap2 libglib2.0-0t64 libpcre2-8-0 libexpat1 libcrypt1
        libuuid1 libffi8 libatomic1 python3.13-minimal libpython3.13-minimal libpython3.13-stdlib libtinfo6)
    take "$root.new" "${packages[@]/%//trixie}"
    rm -rf "$root.new"/usr/lib/aarch64-linux-gnu/{gconv,engines-3,perl}
    ln -s usr/lib "$root.new/lib"
    mkdir "$root.new/bin"
    # Needs twenty more packages, for files of symbols from the network.
    functions=(begin end find_debuginfo find_source set_progressfn set_user_data get_user_data get_url add_http_header set_verbose_fd find_executable)
    printf 'long debuginfod_%s(void) { return 0; }\n' "${functions[@]}" |
        $compiler -shared -fPIC -Wl,-soname,libdebuginfod.so.1 -o "$root.new/usr/lib/aarch64-linux-gnu/libdebuginfod.so.1" -xc -
    mv "$root.new" "$root"
fi
$compiler -O2 -g1 -fomit-frame-pointer -static -Wl,--eh-frame-hdr -o "$work/program" bench/arm/stacks.c

# first PROGRAM: the addresses of its first function, as it is loaded where addresses are not random.
first() {
    local entry base=0
    entry=$(${compiler%gcc}readelf -hW "$1" | sed -n 's/.*Entry point address: *//p')
    ${compiler%gcc}readelf -hW "$1" | grep -q 'Type: *DYN' && base=0xaaaaaaaa0000
    echo $((base + entry)) $((base + entry + 64))
}
cat >"$work/stacks.sh" <<S
printf '\nKERNEL\t%s\t%s\n' "\$(uname -r)" "\$(uname -m)"
echo 0 >/proc/sys/kernel/randomize_va_space
echo -1 >/proc/sys/kernel/perf_event_paranoid
# whole NAME TOOL FROM TO BELOW: counts stacks of perf script's output.
whole() {
    awk -v name="\$1" -v tool="\$2" -v from="\$3" -v to="\$4" -v below="\$5" '
        function ends() { if (last != "" && file !~ /ld-linux/) { all++; address = hex(last); if (has) { below_all++; if (address >= from && address < to) right++ }; frames += depth }; last = ""; depth = 0; has = 0 }
        function hex(text,  i, value) { value = 0; for (i = 1; i <= length(text); i++) value = value * 16 + index("0123456789abcdef", substr(text, i, 1)) - 1; return value }
        /^[ \t]+[0-9a-f]+ / { last = \$1; file = \$NF; depth++; if (\$2 == below || index(\$2, below "+") == 1) has = 1; next }
        { ends() }
        END { ends(); printf "RESULT | %s | %s | %d | %.2f%% | %.2f%% | %.1f |\n", name, tool, all, all ? 100 * below_all / all : 0, all ? 100 * right / all : 0, all ? frames / all : 0 }'
}
try() {
    name=\$1 below=\$2 from=\$3 to=\$4
    shift 4
    perf record -q -e cycles -F 199 --call-graph dwarf -o /tmp/d "\$@" >/dev/null 2>&1
    perf script -i /tmp/d -F comm,ip,sym,dso 2>/dev/null | whole "\$name" 'perf, dwarf' \$from \$to \$below
    perf record -q -e cpu-clock -F 199 --call-graph fp -o /tmp/f "\$@" >/dev/null 2>&1
    perf script -i /tmp/f -F comm,ip,sym,dso 2>/dev/null | whole "\$name" 'perf, fp' \$from \$to \$below
    for capture in perf bpf; do
        plumb record --capture \$capture -F 199 -o /tmp/p.plumb -- "\$@" >/tmp/said 2>&1 || cat /tmp/said
        plumb export --format perf-script -o /tmp/p.txt /tmp/p.plumb >/dev/null 2>&1 || plumb export --format perf-script -o /tmp/p.txt /tmp/p.plumb
        whole "\$name" "plumb, --capture \$capture" \$from \$to \$below </tmp/p.txt
    done
}
try 'C, static, no frame pointers' main $(first "$work/program") /bin/program 4
try 'python3.13, sorted()' Py_BytesMain $(first "$root/usr/bin/python3.13") /usr/bin/python3.13 -S -c 'import time
end = time.time() + 4
while time.time() < end: sorted({str(j): [i] * 9 for j in range(200) for i in (j,)}, key=lambda k: k[::-1])'
S
echo '| program | tool | stacks | to main | whole | frames each |'
echo '|---|---|---|---|---|---|'
ROOT=$root SCRIPT=$work/stacks.sh xtask/kernels/boot.sh "${1:-6.12-arm64}" "$plumb" "$work/program" | tee "$work/stacks.txt" | sed -n 's/^RESULT //p'
