// The second unit of the program.
#include "inline.h"

static int table[64];

static __attribute__((noinline)) void fill(int n) {
    for (int& entry : table) entry = mixed(n, entry);
}

int other_file(int n) {
    fill(n);
    int total = 0;
    for (int entry : table) total = add(total, rotated(entry));
    return total;
}
