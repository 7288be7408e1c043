/* SPDX-License-Identifier: MIT OR Apache-2.0 OR GPL-2.0 */
/* The file that a call's descriptor stands for, and its name. */
#ifndef PLUMB_SUMFILES_H
#define PLUMB_SUMFILES_H

struct {
    UINT(type, BPF_MAP_TYPE_HASH);
    UINT(max_entries, MAX_NAMES);
    UINT(map_flags, BPF_F_NO_PREALLOC);
    TYPE(key, struct NameKey);
    TYPE(value, struct Name);
} names SEC(".maps");

/* A name under construction. */
struct {
    UINT(type, BPF_MAP_TYPE_PERCPU_ARRAY);
    UINT(max_entries, 1);
    TYPE(key, u32);
    TYPE(value, struct Name);
} name_draft SEC(".maps");

/* Stores the name of a file, once. */
INLINE void name_file(struct file *file, struct inode *inode, struct NameKey *key)
{
    u32 zero = 0;
    struct Name *name = bpf_map_lookup_elem(&name_draft, &zero);
    if (!name || bpf_map_lookup_elem(&names, key))
        return;
    struct super_block *super = 0;
    struct file_system_type *type = 0;
    const char *text = 0;
    READ(super, inode->i_sb);
    READ(type, super->s_type);
    READ(text, type->name);
    if (bpf_probe_read_kernel_str(name->system.text, PART_BYTES, text) < 0)
        name->system.text[0] = 0;
    struct dentry *entry = 0, *parent = 0;
    READ(entry, file->f_path.dentry);
    for (u32 i = 0; i < PARTS; i++) {
        name->parts[i].text[0] = 0;
        if (!entry)
            continue;
        READ(text, entry->d_name.name);
        if (bpf_probe_read_kernel_str(name->parts[i].text, PART_BYTES, text) < 0)
            name->parts[i].text[0] = 0;
        READ(parent, entry->d_parent);
        entry = parent == entry ? 0 : parent;
    }
    bpf_map_update_elem(&names, key, name, BPF_NOEXIST);
}

/* Puts the file that the first argument is a descriptor of into the key. Returns 0 if the call takes no descriptor, or the file is not
 * open. */
INLINE int file_of(struct task_struct *task, u32 number, u32 descriptor, struct SumKey *key)
{
    u32 *what = bpf_map_lookup_elem(&known, &number);
    if (!what || !(*what & CALL_TAKES_FILE))
        return 0;
    struct files_struct *files = task->files;
    if (!files)
        return 0;
    struct fdtable *table = files->fdt;
    struct file **all = 0, *file = 0;
    u32 most = 0;
    READ_NUMBER(most, table->max_fds);
    READ(all, table->fd);
    if (descriptor >= most || bpf_probe_read_kernel(&file, sizeof(file), &all[descriptor]) || !file)
        return 0;
    struct inode *inode = 0;
    struct super_block *super = 0;
    READ(inode, file->f_inode);
    READ(super, inode->i_sb);
    struct NameKey name = {};
    READ_NUMBER(name.file, inode->i_ino);
    READ_NUMBER(name.device, super->s_dev);
    name_file(file, inode, &name);
    key->file = name.file;
    key->who = name.device;
    return 1;
}

#endif
