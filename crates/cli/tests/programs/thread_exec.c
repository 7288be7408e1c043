// Works, has another thread than the first exec this program again, and works there: thread_exec HOW
//
// live: the first thread waits for that; gone: it has ended before; twice: the program that was exec'd does it once more; wait: as live, once
// the file `go` is there, which a thread waits for that has been there from the beginning.

#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

static volatile unsigned long sum;
static char *own, *how;

static void work(void)
{
    struct timespec used;
    do {
        for (int i = 0; i < 100000; i++)
            sum += i;
        clock_gettime(CLOCK_THREAD_CPUTIME_ID, &used);
    } while (used.tv_sec * 1000 + used.tv_nsec / 1000000 < 300);
}

__attribute__((noinline)) static void before_exec(void)
{
    work();
    sum++;
}

__attribute__((noinline)) static void in_child(void)
{
    work();
    sum++;
}

__attribute__((noinline)) static void after_exec(void)
{
    // The thread's clock goes on over an exec.
    struct timespec begin, used;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &begin);
    do {
        for (int i = 0; i < 100000; i++)
            sum += i;
        clock_gettime(CLOCK_THREAD_CPUTIME_ID, &used);
    } while ((used.tv_sec - begin.tv_sec) * 1000 + (used.tv_nsec - begin.tv_nsec) / 1000000 < 300);
}

static void *launch(void *first)
{
    if (!strcmp(how, "gone"))
        pthread_join(*(pthread_t *)first, 0);
    while (!strcmp(how, "wait") && access("go", F_OK))
        usleep(1000);
    before_exec();
    execl(own, own, strcmp(how, "twice") ? "after" : "live", (char *)0);
    return 0;
}

int main(int count, char **arguments)
{
    static pthread_t first, other;
    own = arguments[0];
    how = count > 1 ? arguments[1] : "live";
    if (strcmp(how, "after")) {
        first = pthread_self();
        pthread_create(&other, 0, launch, &first);
        if (!strcmp(how, "gone"))
            pthread_exit(0);
        for (;;)
            pause();
    }
    for (int i = 0; i < 5000; i++)
        syscall(SYS_getppid);
    after_exec();
    usleep(200000);
    if (!fork()) {
        in_child();
        _exit(0);
    }
    wait(0);
    return 0;
}
