/* Sleeps 2 ms at a time until a worker has answered; the fix waits on a condition variable. */
#include <pthread.h>
#include <stdio.h>
#include <unistd.h>

enum { JOBS = 500 };

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t changed = PTHREAD_COND_INITIALIZER;
static int asked, answered;
static unsigned long answer;

static void *answer_all(void *unused)
{
	(void)unused;
	unsigned long x = 88172645463325252u;
	for (int i = 0; i < JOBS; i++) {
		pthread_mutex_lock(&lock);
		while (asked == answered)
			pthread_cond_wait(&changed, &lock);
		pthread_mutex_unlock(&lock);
		for (int step = 0; step < 300000; step++) {
			x ^= x << 13;
			x ^= x >> 7;
			x ^= x << 17;
		}
		pthread_mutex_lock(&lock);
		answer = x;
		answered++;
		pthread_cond_broadcast(&changed);
		pthread_mutex_unlock(&lock);
	}
	return NULL;
}

__attribute__((noipa)) static unsigned long ask(void)
{
	pthread_mutex_lock(&lock);
	asked++;
	pthread_cond_broadcast(&changed);
	while (asked != answered) {
#ifdef AFTER
		pthread_cond_wait(&changed, &lock);
#else
		pthread_mutex_unlock(&lock);
		usleep(2000); /* SLOW */
		pthread_mutex_lock(&lock);
#endif
	}
	unsigned long got = answer;
	pthread_mutex_unlock(&lock);
	return got;
}

int main(void)
{
	pthread_t worker;
	pthread_create(&worker, NULL, answer_all, NULL);
	unsigned long sum = 0;
	for (int i = 0; i < JOBS; i++)
		sum += ask();
	pthread_join(worker, NULL);
	fprintf(stderr, "%lu\n", sum);
	return 0;
}
