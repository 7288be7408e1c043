/* Two threads that wait for each other's lock, two hundred that wait for work, and one that reads what never comes. Says "hangs" once all do. */
#include <pthread.h>
#include <stdio.h>
#include <unistd.h>

static pthread_mutex_t locks[2] = {PTHREAD_MUTEX_INITIALIZER, PTHREAD_MUTEX_INITIALIZER};
static pthread_mutex_t queue = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t work = PTHREAD_COND_INITIALIZER;
static pthread_barrier_t both;

__attribute__((noinline)) static void takes_lock(pthread_mutex_t *lock)
{
    pthread_mutex_lock(lock);
    pthread_mutex_unlock(lock);
}

static void *deadlocks(void *number)
{
    long own = (long)number;
    pthread_mutex_lock(&locks[own]);
    pthread_barrier_wait(&both);
    takes_lock(&locks[1 - own]);
    return NULL;
}

__attribute__((noinline)) static void waits_for_work(void)
{
    pthread_mutex_lock(&queue);
    for (;;)
        pthread_cond_wait(&work, &queue);
}

static void *idles(void *unused)
{
    waits_for_work();
    return unused;
}

__attribute__((noinline)) static long hangs_in_read(void)
{
    char byte;
    long got = read(0, &byte, 1);
    __asm__ volatile("" ::: "memory");
    return got;
}

int main(void)
{
    pthread_t thread;
    pthread_barrier_init(&both, NULL, 2);
    for (long number = 0; number < 2; number++)
        pthread_create(&thread, NULL, deadlocks, (void *)number);
    for (int number = 0; number < 200; number++)
        pthread_create(&thread, NULL, idles, NULL);
    /* Until they wait. */
    usleep(300000);
    puts("hangs");
    fflush(stdout);
    return (int)hangs_in_read();
}
