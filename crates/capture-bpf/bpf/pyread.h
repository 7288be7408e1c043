/* SPDX-License-Identifier: MIT OR Apache-2.0 OR GPL-2.0 */
/* Reads the memory of an interpreter. Part of python.h. */
#ifndef PLUMB_PYREAD_H
#define PLUMB_PYREAD_H

INLINE int py_read(u64 at, void *to, u32 size)
{
    return bpf_probe_read_user(to, size, (const void *)at) != 0;
}

INLINE u64 py_word(u64 at)
{
    u64 word = 0;
    return py_read(at, &word, 8) ? 0 : word;
}

/* Reads a pointer on the way to a name, and records it for the recorder, which follows the same pointers. */
INLINE u64 py_follow(struct Code *tell, u64 at)
{
    u64 word = py_word(at);
    u32 place = tell->link_words & (LINK_WORDS - 2);
    tell->links[place] = at;
    tell->links[place + 1] = word;
    tell->link_words = place + 2;
    return word;
}

/* Reads the first bytes of an object, halving the size up to twice if memory is missing. Returns the bytes read. */
#define PY_READ_MOST(at, to, size)                                                                                     \
    (!py_read(at, to, size)         ? (size)                                                                           \
     : !py_read(at, to, (size) / 2) ? (size) / 2                                                                       \
     : !py_read(at, to, (size) / 4) ? (size) / 4                                                                       \
                                    : 0)

#endif
