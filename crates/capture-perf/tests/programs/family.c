// A family of known shape. The program forks 5 workers one after the other; each forks 3 children that exec true, 2 that
// don't, and, from a second thread, 1 that execs true. Then the program itself vforks 4 times and execs true.
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

static char *const TRUE[] = {"true", NULL};

static void *from_a_thread(void *unused) {
    if (fork() == 0) {
        execv("/bin/true", TRUE);
        _exit(1);
    }
    return unused;
}

static void worker(void) {
    for (int i = 0; i < 5; i++) {
        if (fork() == 0) {
            if (i < 3) execv("/bin/true", TRUE);
            _exit(0);
        }
    }
    pthread_t thread;
    pthread_create(&thread, NULL, from_a_thread, NULL);
    pthread_join(thread, NULL);
    while (wait(NULL) > 0) {}
    _exit(0);
}

int main(void) {
    memset(malloc(64 << 20), 1, 64 << 20);
    for (int i = 0; i < 5; i++) {
        if (fork() == 0) worker();
        wait(NULL);
    }
    for (int i = 0; i < 4; i++) {
        if (vfork() == 0) {
            execv("/bin/true", TRUE);
            _exit(1);
        }
        wait(NULL);
    }
    // The recorder measures this process' memory at intervals, so the process has to exist for a while.
    usleep(300000);
    return 0;
}
