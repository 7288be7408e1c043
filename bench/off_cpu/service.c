/* A service with waits, until it is killed: N workers that take a lock, work for a while and sleep, one more that is asked for a millisecond
 * of work by a pipe now and then, and one that waits all the time. Each worker works in an own process if PROCESSES is given.
 *
 *     service N [PROCESSES] */
#include <pthread.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static int pipes[2];

static double now(void)
{
    struct timespec time;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
    return time.tv_sec + time.tv_nsec * 1e-9;
}

static void work(double seconds)
{
    for (double end = now() + seconds; now() < end;)
        ;
}

static void *works(void *unused)
{
    for (;;) {
        pthread_mutex_lock(&lock);
        work(0.0005);
        pthread_mutex_unlock(&lock);
        work(0.001);
        usleep(5000);
    }
    return unused;
}

static void *answers(void *unused)
{
    char byte;
    while (read(pipes[0], &byte, 1) == 1)
        work(0.001);
    return unused;
}

int main(int count, char **words)
{
    int workers = count > 1 ? atoi(words[1]) : 4, processes = count > 2 ? atoi(words[2]) : 0;
    pthread_t thread;
    for (int number = 1; number < processes && fork(); number++)
        ;
    if (pipe(pipes))
        return 1;
    for (int number = 0; number < workers; number++)
        pthread_create(&thread, NULL, works, NULL);
    pthread_create(&thread, NULL, answers, NULL);
    for (;;) {
        usleep(20000);
        if (write(pipes[1], "x", 1) != 1)
            return 1;
    }
}
