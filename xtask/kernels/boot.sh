#!/bin/bash
# Boots a Debian kernel under QEMU, which takes no KVM, and runs check.sh there with plumb in an initramfs. Prints what that prints.
# boot.sh SERIES PROGRAM...           SERIES such as 6.1, or "newest": the newest of Debian's backports; 6.1-arm64 for that processor, 6.12-arm64-16k
#                                     for its kernel with pages of 16 KiB. The programs go to /bin with their libraries
# VMLINUZ: a kernel to boot instead, which needs no modules. APPEND: more of the kernel's command line, such as lockdown=confidentiality. SETUP: a command for the machine before it is tried.
# WORK: where kernels are kept. LIMIT: seconds after which it is ended. FEATURES: functions of check.sh to try, instead of all. SCRIPT: one to run in its place.
# ROOT: a directory of programs and libraries of arm64, instead of the usual ones.
set -eu
here=$(cd "$(dirname "$0")" && pwd)
series=${1%%-*} flavour=${1#"${1%%-*}"}
shift
flavour=${flavour#-}
work=${WORK:-${TMPDIR:-/tmp}/plumb-kernels}
VMLINUZ=${VMLINUZ:-}
mkdir -p "$work"
case $flavour in
    arm64*) architecture=arm64 tools=aarch64-linux-gnu- ;;
    *) architecture=amd64 tools= ;;
esac
# The kernels for clouds are small, but only those of 4 KiB pages exist.
case $flavour in '' | arm64) flavour=cloud-$architecture ;; esac

. "$here/packages.sh"

# The newest kernel of the series.
case $series in newest) versions='[0-9]' ;; *) versions="${series//./\\.}\\.[0-9]" ;; esac
newest() { apt-cache "$@" search -n "^linux-image-$versions.*[0-9]-$flavour\$" | awk '{ print $1 }' | sort -V | tail -n 1; }
# The machine's own sources know the newest kernel only of their own release.
apt=() image=
[ "$series$architecture" = newestamd64 ] || image=$(newest)
if [ -z "$image$VMLINUZ" ] || [ $architecture = arm64 ]; then
    ask_others newest "${others[@]}"
    apt=("${others[@]}")
    [ -n "$image$VMLINUZ" ] || image=$(newest "${apt[@]}")
fi
[ -n "$image$VMLINUZ" ] || { echo "no kernel of the series $series among Debian's packages (apt-get update?)" >&2; exit 2; }

if [ -z "$VMLINUZ" ] && [ ! -f "$work/$image/vmlinuz" ]; then
    fresh=$(mktemp -d "$work/fresh.XXXXXX")
    # Since Linux 7 the kernel is in linux-binary-VERSION, and linux-image-VERSION is empty.
    (
        cd "$fresh"
        for package in "$image" "${image/linux-image-/linux-binary-}"; do
            [ -f vmlinuz ] && break
            apt-get "${apt[@]}" download -q "$package" >&2
            dpkg -x ./*.deb x
            find x -name 'vmlinu[xz]*' -type f -size +1M -exec cp {} vmlinuz ';'
            rm -rf x ./*.deb
        done
        [ -f vmlinuz ]
    )
    rm -rf "${work:?}/$image"
    mv "$fresh" "$work/$image"
fi

# What a machine of the other processor has instead of this one's: busybox, and Python with its libraries.
if [ $architecture = arm64 ] && [ ! -d "$work/programs-arm64" ]; then
    take "$work/programs-arm64" {busybox-static,libc6,libexpat1,zlib1g}/bookworm python3.11-minimal libpython3.11-minimal
fi

root=$(mktemp -d "$work/root.XXXXXX")
trap 'rm -rf "$root" "$root.gz"' EXIT
chmod 755 "$root"
mkdir -p "$root"/{bin,usr/bin,proc,sys,dev,tmp,root}
case $architecture in
    amd64) cp /bin/busybox "$root/bin/busybox" ;;
    arm64)
        cp -a "${ROOT:-$work/programs-arm64}/." "$root"
        cp "$work/programs-arm64/bin/busybox" "$root/bin/"
        ;;
esac
for program in "$@"; do
    # check.sh looks for the names of its programs' functions, and for none of plumb's.
    case $program in */plumb) what= ;; *) what=-g ;; esac
    ${tools}strip $what -o "$root/bin/$(basename "$program")" "$program" 2>/dev/null || cp "$program" "$root/bin/"
done
# check.sh asks for the source lines of no one, but for the names of functions.
[ $architecture = arm64 ] && python= || python=$(python3.11 -c 'import os, sys; print(os.path.realpath(sys.executable))' 2>/dev/null || true)
if [ -n "$python" ]; then
    prefix=$("$python" -c 'import sys; print(sys.base_prefix)')
    cp "$python" "$root/bin/python3.11"
    mkdir -p "$root$prefix/lib/python3.11"
    cp -r "$prefix/lib/python3.11/encodings" "$prefix"/lib/python3.11/*.py "$root$prefix/lib/python3.11/"
    export PYTHONHOME=$prefix
fi
for file in "$root"/bin/*; do
    ldd "$file" 2>/dev/null | grep -oE '/[^ ]+' | while read -r library; do
        mkdir -p "$root$(dirname "$library")"
        cp -Lu "$library" "$root$library"
    done || true
done
cp "${SCRIPT:-$here/check.sh}" "$root/check.sh"
cat >"$root/init" <<I
#!/bin/busybox sh
/bin/busybox --install -s /bin
mount -t proc proc /proc; mount -t sysfs sys /sys; mount -t devtmpfs dev /dev; mount -t tmpfs tmp /tmp
mount -t cgroup2 cgroup2 /sys/fs/cgroup; mount -t tracefs tracefs /sys/kernel/tracing
ip link set lo up
${SETUP:-:}
export HOME=/root PATH=/bin:/usr/bin TERM=dumb PYTHONHOME=${PYTHONHOME:-} ROUNDS=100
sh /check.sh ${FEATURES:-}
poweroff -f
I
chmod +x "$root/init"
(cd "$root" && find . | cpio -o -H newc 2>/dev/null | gzip -1 >"$root.gz")
# One processor: of two, each emulated by a thread of its own, one now and then runs an instruction that the other is replacing, which ends in an
# int3 wherever perf's branches are switched (finish_task_switch); two in one thread wait for each other for minutes. A processor that is stuck for
# two minutes, twice the threshold, ends the run. Instructions of aarch64 are replaced without such a step in between.
case $architecture in
    amd64) machine=(qemu-system-x86_64 -M q35 -cpu max -smp 1) console=ttyS0 ;;
    arm64) machine=(qemu-system-aarch64 -M virt -cpu "max,pauth-impdef=on" -smp 2) console=ttyAMA0 ;;
esac
timeout "${LIMIT:-1500}" "${machine[@]}" -m 3G -nographic -no-reboot -kernel "${VMLINUZ:-$work/$image/vmlinuz}" \
    -initrd "$root.gz" -append "console=$console quiet watchdog_thresh=60 softlockup_panic=1 panic=-1 ${APPEND:-}" </dev/null | sed -un 's/\r//g; /KERNEL\t/,$p'
