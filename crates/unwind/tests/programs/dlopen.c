// Loads a library, calls it, unloads it and loads another, which the linker then puts at the same addresses:
// everything remembered about the first one is wrong for the second.
#include <dlfcn.h>
#include <stdio.h>
#include <string.h>
volatile long sum;

__attribute__((noinline)) long call(int (*function)(int), int depth) {
    return depth == 0 ? function(3) : call(function, depth - 1) + sum;
}

int main(int argc, char **argv) {
    void *last = 0;
    int same = 0;
    for (int i = 0; i < 4; i++) {
        char path[4096];
        snprintf(path, sizeof path, "%.*s/%s", (int)(strrchr(argv[0], '/') - argv[0]), argv[0],
                 i % 2 ? "libsecond.so" : "libfirst.so");
        void *library = dlopen(path, RTLD_NOW);
        if (!library) return 2;
        int (*function)(int) = (int (*)(int))dlsym(library, "entry");
        same += (void *)function == last;
        last = (void *)function;
        sum += call(function, i);
        dlclose(library);
    }
    return same == 3 ? 0 : 3;
}
