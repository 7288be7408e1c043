/* SPDX-License-Identifier: MIT OR Apache-2.0 OR GPL-2.0 */
/* The mappings of processes, as far as walks met them, and the numbers of mapped files.
 *
 * A space belongs to the memory that it names: a program that finds another `mm` in it leaves it alone. Mappings are entered when a
 * walk meets an unknown address, and removed while the kernel changes them. Elsewhere: when that happens (lives.h). */
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

/* A space of zeros. */
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

/* Returns the number of a file, which is a new one if the file was not seen before. */
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
    /* Another CPU was faster. */
    known = bpf_map_lookup_elem(&numbers, &key);
    return known ? *known : FILE_NONE;
}

/* By process: anonymous memory that contains a copy of a file's text, as found by the recorder. */
struct {
    UINT(type, BPF_MAP_TYPE_LRU_HASH);
    UINT(max_entries, MAX_SPACES);
    TYPE(key, u32);
    TYPE(value, struct CopiedTexts);
} copied_texts SEC(".maps");

/* Returns the number of the file whose text was copied to the memory that begins at an address, and the offset of that text in the
 * file. */
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
    if (number == FILE_NONE && file) {
        number = file_number(file);
        offset = (u64)NUMBER(vma->vm_pgoff) << PAGE_SHIFT;
    } else if (number == FILE_NONE && vdso_of(task) == start) {
        number = FILE_VDSO;
    }
    u32 index = __sync_fetch_and_add(&space->entered, 1) & (MAX_MAPPINGS - 1);
    struct Mapping *mapping = &space->mappings[index];
    /* No lookup matches the entry before its length is set. */
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

/* Enters the mapping that contains an address. Returns whether there is one. */
INLINE int look(struct task_struct *task, struct Space *space, u64 address)
{
    struct looking looking = { .space = space };
    return !bpf_find_vma(task, address, enter_vma, &looking, 0) && looking.found;
}

/* Creates an empty space for a process. */
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
    /* The space matches no process before its mm is set. */
    space->birth = __sync_fetch_and_add(&last_birth, 1) + 1;
    BARRIER();
    space->mm = mm;
    return space;
}

/* Removes the mappings that overlap a range of addresses. Returns whether there were any. */
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
