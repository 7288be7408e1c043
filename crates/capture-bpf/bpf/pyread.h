/* SPDX-License-Identifier: MIT OR Apache-2.0 OR GPL-2.0 */
/* Reading the memory of an interpreter. Part of python.h. */
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

/* Reads a word on the way to a name, and keeps it for the recorder, which goes the same way. */
INLINE u64 py_follow(struct Code *tell, u64 at)
{
    u64 word = py_word(at);
    u32 place = tell->link_words & (LINK_WORDS - 2);
    tell->links[place] = at;
    tell->links[place + 1] = word;
    tell->link_words = place + 2;
    return word;
}

/* Reads from the beginning of something as much as is there, by halves. Returns how much. */
#define PY_READ_MOST(at, to, size)                                                                                     \
    (!py_read(at, to, size)         ? (size)                                                                           \
     : !py_read(at, to, (size) / 2) ? (size) / 2                                                                       \
     : !py_read(at, to, (size) / 4) ? (size) / 4                                                                       \
                                    : 0)

#endif
