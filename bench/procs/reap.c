/* The time that it takes to reap a child while another thread of the parent looks into the child's /proc entries, by the priorities of both.
 *
 *   gcc -O2 -pthread -o reap bench/procs/reap.c && ./reap NICE_OF_REAPER NICE_OF_LOOKER ROUNDS      (root, for a negative one)
 *
 * Whoever reaps frees those entries, and while the other thread frees them too, loops until it has (d_invalidate in fs/dcache.c). On one
 * processor the one with the higher priority then keeps the other from ending it. */
#define _GNU_SOURCE
#include <dirent.h>
#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

static volatile int pid, looker_nice;

/* All on one processor. */
static void pin(void)
{
    cpu_set_t set;
    CPU_ZERO(&set);
    CPU_SET(0, &set);
    sched_setaffinity(0, sizeof set, &set);
}

static void look_at_links(const char *directory)
{
    DIR *open = opendir(directory);
    if (!open)
        return;
    struct dirent *entry;
    while ((entry = readdir(open))) {
        char path[600], target[256];
        snprintf(path, sizeof path, "%s/%s", directory, entry->d_name);
        if (readlink(path, target, sizeof target) < 0)
            continue;
    }
    closedir(open);
}

static void *look(void *unused)
{
    setpriority(PRIO_PROCESS, 0, looker_nice);
    for (;;) {
        char path[64];
        snprintf(path, sizeof path, "/proc/%d/map_files", pid);
        look_at_links(path);
        snprintf(path, sizeof path, "/proc/%d/fd", pid);
        look_at_links(path);
    }
    return unused;
}

/* 400 mappings and 400 files, for 3 to 23 ms. */
static void child(void)
{
    setpriority(PRIO_PROCESS, 0, 0);
    for (int i = 0; i < 400; i++) {
        mmap(0, 8192, i & 1 ? PROT_READ : PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
        open("/dev/null", O_RDONLY);
    }
    usleep(3000 + rand() % 20000);
    _exit(0);
}

static double seconds(struct timespec from, struct timespec to)
{
    return to.tv_sec - from.tv_sec + 1e-9 * (to.tv_nsec - from.tv_nsec);
}

int main(int count, char **arguments)
{
    if (count != 4)
        return 2;
    looker_nice = atoi(arguments[2]);
    int rounds = atoi(arguments[3]), slow = 0;
    double worst = 0, system = 0;
    pin();
    pthread_t thread;
    pthread_create(&thread, 0, look, 0);
    setpriority(PRIO_PROCESS, 0, atoi(arguments[1]));
    for (int i = 0; i < rounds; i++) {
        int started = fork();
        if (!started)
            child();
        pid = started;
        /* As a recorder that learns of the end a moment later. Until then the other thread meets a process that has ended. */
        siginfo_t ended = { 0 };
        while (!waitid(P_PID, started, &ended, WEXITED | WNOWAIT | WNOHANG) && !ended.si_pid)
            usleep(1000);
        struct timespec begin, end;
        struct rusage before, after;
        getrusage(RUSAGE_THREAD, &before);
        clock_gettime(CLOCK_MONOTONIC, &begin);
        waitpid(started, 0, 0);
        clock_gettime(CLOCK_MONOTONIC, &end);
        getrusage(RUSAGE_THREAD, &after);
        double took = seconds(begin, end);
        worst = took > worst ? took : worst;
        slow += took > 0.05;
        system += after.ru_stime.tv_sec - before.ru_stime.tv_sec + 1e-6 * (after.ru_stime.tv_usec - before.ru_stime.tv_usec);
        if (took > 1)
            printf("round %d: %.1f s\n", i, took);
    }
    printf("worst %.3f s, system time %.3f s, %d of %d longer than 50 ms\n", worst, system, slow, rounds);
}
