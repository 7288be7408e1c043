/* SPDX-License-Identifier: MIT OR Apache-2.0 OR GPL-2.0 */
/* What is mapped where in a process, as far as walks met it, and the numbers of the files that are.
 *
 * A space is of the memory that it names: who finds another `mm` in it leaves it alone. It is entered where an address is not
 * known, and forgotten while the kernel changes it. Not here: when that is. */
#ifndef PLUMB_SPACES_H
#define PLUMB_SPACES_H

#include "kernel.h"
#include "wire.h"

struct {
    UINT(type, BPF_MAP_TYPE_LRU_HASH);
    UINT(max_entries, MAX_SPACES);
    TYPE(key, u32);
    TYPE(value, struct Space);
} spaces SEC(".maps");

/* An entry of zeros. */
struct {
    UINT(type, BPF_MAP_TYPE_ARRAY);
    UINT(max_entries, 1);
    TYPE(key, u32);
    TYPE(value, struct Space);
} blank SEC(".maps");

struct {
    UINT(type, BPF_MAP_TYPE_HASH);
    UINT(max_entries, MAX_FILES);
    TYPE(key, struct FileKey);
    TYPE(value, u32);
} numbers SEC(".maps");

u32 last_file = FILE_FIRST - 1;
u64 last_birth = 0;

/* The number of a file: a new one if it was not seen before. */
INLINE u32 file_number(struct file *file)
{
    struct FileKey key = {};
    struct inode *inode = 0;
    struct super_block *system = 0;
    READ(inode, file->f_inode);
    READ(system, inode->i_sb);
    READ_NUMBER(key.inode, inode->i_ino);
    READ_NUMBER(key.size, inode->i_size);
    READ_NUMBER(key.device, system->s_dev);
    if (HAS(inode->i_generation))
        READ_NUMBER(key.generation, inode->i_generation);
    u32 *known = bpf_map_lookup_elem(&numbers, &key);
    if (known)
        return *known;
    u32 number = __sync_fetch_and_add(&last_file, 1) + 1;
    if (number >= MAX_FILES - MAX_PIECES)
        return FILE_NONE;
    if (!bpf_map_update_elem(&numbers, &key, &number, BPF_NOEXIST))
        return number;
    /* Another processor was faster. */
    known = bpf_map_lookup_elem(&numbers, &key);
    return known ? *known : FILE_NONE;
}

/* By process: memory without a file that holds a copy of a file's text, as the recorder learnt. */
struct {
    UINT(type, BPF_MAP_TYPE_LRU_HASH);
    UINT(max_entries, MAX_SPACES);
    TYPE(key, u32);
    TYPE(value, struct CopiedTexts);
} copied_texts SEC(".maps");

/* The file whose text was copied to the memory that begins at an address, and where in it that begins. */
INLINE u32 copied_from(u32 tgid, u64 start, u64 *offset)
{
    struct CopiedTexts *texts = bpf_map_lookup_elem(&copied_texts, &tgid);
    for (u32 i = 0; texts && i < COPIED_TEXTS; i++) {
        if (texts->all[i].file && texts->all[i].start == start) {
            *offset = texts->all[i].offset;
            return texts->all[i].file;
        }
    }
    return FILE_NONE;
}

struct looking {
    struct Space *space;
    u64 found;
};

static long enter_vma(struct task_struct *task, struct vm_area_struct *vma, struct looking *looking)
{
    struct Space *space = looking->space;
    u64 start = NUMBER(vma->vm_start), end = NUMBER(vma->vm_end);
    if (!(NUMBER(vma->vm_flags) & VM_EXEC))
        return 0;
    struct file *file = 0;
    READ(file, vma->vm_file);
    u64 offset = 0;
    u32 number = copied_from(NUMBER(task->tgid), start, &offset);
    if (number != FILE_NONE) {
        file = 0;
    } else if (file) {
        number = file_number(file);
        offset = (u64)NUMBER(vma->vm_pgoff) << 12;
    } else if (vdso_of(task) == start) {
        number = FILE_VDSO;
    }
    u32 index = __sync_fetch_and_add(&space->entered, 1) & (MAX_MAPPINGS - 1);
    struct Mapping *mapping = &space->mappings[index];
    /* Nobody finds it before its length is there. */
    mapping->pages = 0;
    BARRIER();
    mapping->start = start;
    mapping->offset = offset;
    mapping->file = number;
    BARRIER();
    mapping->pages = (end - start) >> 12;
    looking->found = 1;
    return 0;
}

/* Enters the mapping of an address. Returns whether there is one. */
INLINE int look(struct task_struct *task, struct Space *space, u64 address)
{
    struct looking looking = { .space = space };
    return !bpf_find_vma(task, address, enter_vma, &looking, 0) && looking.found;
}

/* A new, empty space for a process. */
INLINE struct Space *new_space(u32 tgid, u64 mm)
{
    u32 zero = 0;
    struct Space *space = bpf_map_lookup_elem(&blank, &zero);
    if (!space)
        return 0;
    bpf_map_update_elem(&spaces, &tgid, space, BPF_ANY);
    space = bpf_map_lookup_elem(&spaces, &tgid);
    if (!space)
        return 0;
    /* Nobody takes it for theirs before it is. */
    space->birth = __sync_fetch_and_add(&last_birth, 1) + 1;
    BARRIER();
    space->mm = mm;
    return space;
}

/* Forgets what was known of these addresses. */
APART int forget(struct Space *space, u64 first, u64 last)
{
    if (!space)
        return 0;
    int found = 0;
    /* Most processes have met a handful of mappings, and map and unmap a hundred times in their first millisecond. */
    u32 entered = space->entered;
    for (u32 i = 0; i < MAX_MAPPINGS; i++) {
        if (i >= entered)
            break;
        struct Mapping *mapping = &space->mappings[i];
        u64 pages = mapping->pages;
        if (!pages || mapping->start > last || mapping->start + (pages << 12) <= first)
            continue;
        mapping->pages = 0;
        found = 1;
    }
    return found;
}

#endif
