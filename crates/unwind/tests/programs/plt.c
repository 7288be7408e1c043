// Calls through the PLT at several depths. With lazy binding, the first call of each function goes through the
// resolver.
#include <stdlib.h>
#include <string.h>
int external(int), external_other(int);
volatile long sum;

__attribute__((noinline)) long deeper(int depth) {
    if (depth == 0) {
        long s = 0;
        for (int i = 0; i < 20; i++) s += external(i) + external_other(i);
        return s;
    }
    return deeper(depth - 1) + sum;
}

int main(void) {
    for (int i = 0; i < 20; i++) sum += deeper(i);
    char *text = strdup("plt");
    sum += atoi(text) + labs(-sum);
    free(text);
    return 0;
}
