/* SPDX-License-Identifier: MIT OR Apache-2.0 OR GPL-2.0 */
/* The kernel's interface as the programs use it: types, helpers, and the fields of its structures that are read.
 *
 * Only the names of fields matter: their offsets in the running kernel are found from its BTF when the program is loaded.
 * Numbers and prototypes of helpers: include/uapi/linux/bpf.h. */
#ifndef PLUMB_KERNEL_H
#define PLUMB_KERNEL_H

typedef unsigned char u8;
typedef unsigned short u16;
typedef unsigned int u32;
typedef unsigned long long u64;
typedef signed char s8;
typedef short s16;
typedef int s32;
typedef long long s64;

#define SEC(name) __attribute__((section(name), used))
#define INLINE static inline __attribute__((always_inline))
/* Verified on its own, once, whatever the number of callers. */
#define APART __attribute__((noinline))
#define UINT(name, value) int(*name)[value]
#define TYPE(name, type) typeof(type) *name
#define BARRIER() asm volatile("" ::: "memory")

/* Hides a value from the compiler's optimizer. */
#define OPAQUE(value) asm volatile("" : "+r"(value))

/* Facts about a field of the running kernel that the loader fills in (enum bpf_core_relo_kind in linux/bpf.h). */
#define FIELD_BYTES 1
#define FIELD_EXISTS 2
#define FIELD_IS_SIGNED 3
#define FIELD_LEFT_SHIFT 4
#define FIELD_RIGHT_SHIFT 5

/* Whether the running kernel has a field. The verifier refuses a program that reads a missing field, unless this guards it. */
#define HAS(field) __builtin_preserve_field_info(field, FIELD_EXISTS)

/* The number in a field of a kernel structure, from the bytes that contain it. A kernel may store it in another width, signed or
 * unsigned, or as a bit field. */
#define VALUE_OF(field, bytes)                                                                                         \
    ({                                                                                                                 \
        u64 up_ = (bytes) << __builtin_preserve_field_info(field, FIELD_LEFT_SHIFT);                                   \
        u32 down_ = __builtin_preserve_field_info(field, FIELD_RIGHT_SHIFT);                                           \
        (typeof(field))(__builtin_preserve_field_info(field, FIELD_IS_SIGNED) ? (u64)((s64)up_ >> down_) : up_ >> down_); \
    })

/* Loads a number from a structure that the verifier lets programs access. `task->pid` would be a single load of the width that `pid`
 * has here. */
#define NUMBER(field)                                                                                                  \
    ({                                                                                                                 \
        const volatile void *at_ = &(field);                                                                           \
        u64 bytes_ = 0;                                                                                                \
        /* One load for each width, as each needs an instruction of its own: the others are never reached. */          \
        OPAQUE(at_);                                                                                                   \
        switch (__builtin_preserve_field_info(field, FIELD_BYTES)) {                                                   \
        case 1:                                                                                                        \
            bytes_ = *(const volatile u8 *)at_;                                                                        \
            break;                                                                                                     \
        case 2:                                                                                                        \
            bytes_ = *(const volatile u16 *)at_;                                                                       \
            break;                                                                                                     \
        case 4:                                                                                                        \
            bytes_ = *(const volatile u32 *)at_;                                                                       \
            break;                                                                                                     \
        case 8:                                                                                                        \
            bytes_ = *(const volatile u64 *)at_;                                                                       \
            break;                                                                                                     \
        }                                                                                                              \
        VALUE_OF(field, bytes_);                                                                                       \
    })

/* A number that the kernel may lack, and the value to use then. */
#define OPTIONAL(field, otherwise) (HAS(field) ? NUMBER(field) : (otherwise))

#include "arch.h"

enum {
    BPF_MAP_TYPE_HASH = 1,
    BPF_MAP_TYPE_ARRAY = 2,
    BPF_MAP_TYPE_PERF_EVENT_ARRAY = 4,
    BPF_MAP_TYPE_PERCPU_HASH = 5,
    BPF_MAP_TYPE_PERCPU_ARRAY = 6,
    BPF_MAP_TYPE_LRU_HASH = 9,
    BPF_MAP_TYPE_ARRAY_OF_MAPS = 12,
    BPF_MAP_TYPE_RINGBUF = 27,
    BPF_MAP_TYPE_TASK_STORAGE = 29,
    BPF_F_NO_PREALLOC = 1,
    BPF_F_MMAPABLE = 1 << 10,
    BPF_ANY = 0,
    BPF_NOEXIST = 1,
    BPF_RB_NO_WAKEUP = 1,
    BPF_RB_FORCE_WAKEUP = 2,
    BPF_RB_AVAIL_DATA = 0,
    BPF_LOCAL_STORAGE_GET_F_CREATE = 1,
};

/* For a map with one entry per CPU: the current CPU's entry. */
#define BPF_F_CURRENT_CPU 0xffffffffull

/* asm-generic/errno-base.h */
#define ENOSPC 28

/* linux/sched.h */
#define PF_KTHREAD 0x00200000
#define PF_USER_WORKER 0x00004000
#define PF_IO_WORKER 0x00000010
#define TASK_DEAD 0x80
/* linux/mm.h */
#define VM_EXEC 4

#pragma clang attribute push(__attribute__((preserve_access_index)), apply_to = record)

struct file_system_type {
    const char *name;
};

struct super_block {
    u32 s_dev;
    struct file_system_type *s_type;
};

struct qstr {
    const char *name;
};

struct dentry {
    struct dentry *d_parent;
    struct qstr d_name;
};

struct path {
    struct dentry *dentry;
};

struct inode {
    struct super_block *i_sb;
    unsigned long i_ino;
    u32 i_generation;
    s64 i_size;
};

struct file {
    struct inode *f_inode;
    struct path f_path;
};

struct fdtable {
    unsigned int max_fds;
    struct file **fd;
};

struct files_struct {
    struct fdtable *fdt;
};

struct vm_area_struct {
    unsigned long vm_start;
    unsigned long vm_end;
    unsigned long vm_flags;
    unsigned long vm_pgoff;
    struct file *vm_file;
};

typedef struct {
    void *vdso;
} mm_context_t;

struct maple_tree {
    unsigned int ma_flags;
};

struct ma_state {
    struct maple_tree *tree;
    unsigned long index;
    unsigned long last;
};

struct mm_struct {
    struct maple_tree mm_mt;
    mm_context_t context;
    unsigned long start_code;
};

typedef struct {
    int counter;
} atomic_t;

struct signal_struct {
    atomic_t live;
    int nr_threads;
};

struct sched_entity {
    u64 sum_exec_runtime;
};

struct sched_info {
    unsigned long long run_delay;
};

struct kernfs_node {
    const char *name;
};

struct cgroup;

struct cgroup_subsys_state {
    struct cgroup *cgroup;
    struct cgroup_subsys_state *parent;
};

struct cgroup {
    struct cgroup_subsys_state self;
    struct kernfs_node *kn;
};

struct css_set {
    struct cgroup_subsys_state *subsys[1];
    struct cgroup *dfl_cgrp;
};

/* A pending return probe (uretprobe): the stack address of the return address, and its original value. */
struct return_instance {
    struct return_instance *next;
    unsigned long stack;
    unsigned long orig_ret_vaddr;
};

struct uprobe_task {
    struct return_instance *return_instances;
    union {
        struct {
            unsigned long vaddr;
        };
    };
    unsigned long xol_vaddr;
};

struct task_struct {
    struct thread_info thread_info;
    unsigned int __state;
    unsigned int flags;
    int on_cpu;
    struct sched_entity se;
    struct sched_info sched_info;
    int pid;
    int tgid;
    struct mm_struct *mm;
    struct task_struct *group_leader;
    struct signal_struct *signal;
    struct files_struct *files;
    struct css_set *cgroups;
    struct thread_struct thread;
    struct uprobe_task *utask;
    unsigned long nvcsw;
    unsigned long nivcsw;
    unsigned long min_flt;
    unsigned long maj_flt;
    char comm[16];
};

#pragma clang attribute pop

/* linux/bpf.h: the context of an iterator program, with what all its calls have in common. */
struct bpf_iter_meta {
    void *file;
};

/* linux/bpf_perf_event.h: the context of a perf_event program, also part of the ABI. */
struct bpf_perf_event_data {
    struct user_pt_regs regs;
    u64 sample_period;
    u64 addr;
};

static void *(*const bpf_map_lookup_elem)(void *map, const void *key) = (void *)1;
static long (*const bpf_map_update_elem)(void *map, const void *key, const void *value, u64 flags) = (void *)2;
static long (*const bpf_map_delete_elem)(void *map, const void *key) = (void *)3;
static u64 (*const bpf_ktime_get_ns)(void) = (void *)5;
static u32 (*const bpf_get_prandom_u32)(void) = (void *)7;
static u32 (*const bpf_get_smp_processor_id)(void) = (void *)8;
static long (*const bpf_get_current_comm)(void *to, u32 size) = (void *)16;
static long (*const bpf_perf_event_output)(void *ctx, void *map, u64 flags, void *data, u64 size) = (void *)25;
static long (*const bpf_perf_event_read_value)(void *map, u64 flags, void *value, u32 size) = (void *)55;
static long (*const bpf_get_stack)(void *ctx, void *buffer, u32 size, u64 flags) = (void *)67;
static long (*const bpf_probe_read_user)(void *to, u32 size, const void *from) = (void *)112;
static long (*const bpf_probe_read_user_str)(void *to, u32 size, const void *from) = (void *)114;
static long (*const bpf_probe_read_kernel)(void *to, u32 size, const void *from) = (void *)113;
static long (*const bpf_probe_read_kernel_str)(void *to, u32 size, const void *from) = (void *)115;
static long (*const bpf_seq_write)(void *file, const void *data, u32 size) = (void *)127;
static long (*const bpf_ringbuf_output)(void *ring, void *data, u64 size, u64 flags) = (void *)130;
static void *(*const bpf_ringbuf_reserve)(void *ring, u64 size, u64 flags) = (void *)131;
static void (*const bpf_ringbuf_submit)(void *data, u64 flags) = (void *)132;
static u64 (*const bpf_ringbuf_query)(void *ring, u64 flags) = (void *)134;
static long (*const bpf_get_task_stack)(struct task_struct *task, void *buffer, u32 size, u64 flags) = (void *)141;
static void *(*const bpf_task_storage_get)(void *map, struct task_struct *task, void *value, u64 flags) = (void *)156;
static long (*const bpf_task_storage_delete)(void *map, struct task_struct *task) = (void *)157;
static struct task_struct *(*const bpf_get_current_task_btf)(void) = (void *)158;
static u64 (*const bpf_get_attach_cookie)(void *ctx) = (void *)174;
static long (*const bpf_task_pt_regs)(struct task_struct *task) = (void *)175;
static long (*const bpf_find_vma)(struct task_struct *task, u64 address, void *callback, void *ctx, u64 flags) = (void *)180;
static long (*const bpf_loop)(u32 count, void *callback, void *ctx, u64 flags) = (void *)181;

/* The most return probes that can be pending in one task (kernel/events/uprobes.c). */
#define MAX_URETPROBE_DEPTH 64

/* Limits a value to `most`, so that the verifier knows the limit. Older verifiers (Linux 6.1) learn nothing from a check that the
 * compiler removes as needless, or makes of a copy of the value. */
INLINE u64 at_most(u64 value, u64 most)
{
    OPAQUE(value);
    if (value > most)
        value = most;
    OPAQUE(value);
    return value;
}

/* Returns the time between two readings of the clock, at least 0. The clock can be read anywhere, even while the kernel sets it, and
 * may step back a little, above all between CPUs (kernel/time/timekeeping.c, ktime_get_mono_fast_ns). */
INLINE u64 elapsed_ns(u64 now, u64 then)
{
    return now > then ? now - then : 0;
}

/* Reads a pointer in a structure of the kernel, through any pointer. */
#define READ(to, from) bpf_probe_read_kernel(&(to), sizeof(to), &(from))

/* Reads a number in a structure of the kernel, through any pointer. */
#define READ_NUMBER(to, field)                                                                                         \
    ({                                                                                                                 \
        u64 bytes_ = 0;                                                                                                \
        bpf_probe_read_kernel(&bytes_, __builtin_preserve_field_info(field, FIELD_BYTES), &(field));                   \
        (to) = VALUE_OF(field, bytes_);                                                                                \
    })

/* Returns the address space of a task, as a number. Does not load the pointer directly: for a pointer in a structure that it trusts the
 * verifier compares the names of all types of the kernel, several times on each path to that place, a millisecond each time
 * (btf_nested_type_is_trusted in kernel/bpf/btf.c). */
INLINE u64 mm_of(struct task_struct *task)
{
    struct mm_struct *mm = 0;
    READ(mm, task->mm);
    return (u64)mm;
}

/* Returns the address of a task's vdso. */
INLINE u64 vdso_of(struct task_struct *task)
{
    struct mm_struct *mm = 0;
    void *vdso = 0;
    READ(mm, task->mm);
    READ(vdso, mm->context.vdso);
    return (u64)vdso;
}

#endif
