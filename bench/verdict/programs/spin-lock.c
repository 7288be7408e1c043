/* Two threads spin for a lock that is held for a long time; the fix adds up outside of the lock. */
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>

enum { ROUNDS = 16000, STEPS = 20000 };

static atomic_int held;
static unsigned long total;

static void take(void)
{
	while (atomic_exchange_explicit(&held, 1, memory_order_acquire)) /* SLOW */
		;
}

static void release(void)
{
	atomic_store_explicit(&held, 0, memory_order_release);
}

static void *work(void *argument)
{
	unsigned long x = (long)argument + 88172645463325252u;
	for (int round = 0; round < ROUNDS; round++) {
#ifndef AFTER
		take();
#endif
		for (int step = 0; step < STEPS; step++) {
			x ^= x << 13;
			x ^= x >> 7;
			x ^= x << 17;
		}
#ifdef AFTER
		take();
#endif
		total += x & 0xff;
		release();
	}
	return NULL;
}

int main(void)
{
	pthread_t threads[2];
	for (long i = 0; i < 2; i++)
		pthread_create(&threads[i], NULL, work, (void *)i);
	for (int i = 0; i < 2; i++)
		pthread_join(threads[i], NULL);
	fprintf(stderr, "%lu\n", total);
	return 0;
}
