/* SPDX-License-Identifier: MIT OR Apache-2.0 OR GPL-2.0 */
/* Interpreters and runtimes of processes: where their state is, and whether the walk may go through code that they make. Elsewhere: their frames
 * (script.h). */
#ifndef PLUMB_RUNTIMES_H
#define PLUMB_RUNTIMES_H

/* Reader of a runtime whose code keeps to no convention, and whose frames only the recorder finds: KernelLayout::WITHOUT_READER. */
#define READER_NONE 0xffffffffu

/* Returns the address of the interpreter state and the number of its layout, given an address in the interpreter's file; 0: not an
 * interpreter. */
APART u64 runtime_at(struct Space *space, u64 address, u32 *layout)
{
    int index = mapping_at(space, address);
    if (!space || !layout || index < 0)
        return 0;
    struct Mapping *mapping = &space->mappings[index & (MAX_MAPPINGS - 1)];
    struct File *file = env_file(mapping->file);
    if (!file || !file->script)
        return 0;
    *layout = file->layout;
    return file->script + address - stated(file, address - mapping->start + mapping->offset);
}

/* Returns whether the code of a process without a file is that of a runtime with rules of its own. */
APART int has_own_rules(struct Space *space)
{
    u32 number = 0;
    if (!space || !space->script || !runtime_at(space, space->script, &number))
        return 0;
    struct ScriptLayout *layout = bpf_map_lookup_elem(&layouts, &number);
    return layout && layout->reader == READER_NONE;
}

#endif
