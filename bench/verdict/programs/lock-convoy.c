/* Two threads take a mutex for each item; the fix takes it for each batch of 1000. */
#include <pthread.h>
#include <stdio.h>

enum { ITEMS = 40000000, BATCH = 1000 };

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static long ledger[64];

static void *post_items(void *argument)
{
	unsigned seed = (long)argument + 1;
	for (int i = 0; i < ITEMS; i++) {
#ifdef AFTER
		if (i % BATCH == 0)
			pthread_mutex_lock(&lock);
#else
		pthread_mutex_lock(&lock); /* SLOW */
#endif
		seed = seed * 1664525 + 1013904223;
		ledger[seed >> 26] += seed & 7;
#ifdef AFTER
		if (i % BATCH == BATCH - 1)
			pthread_mutex_unlock(&lock);
#else
		pthread_mutex_unlock(&lock);
#endif
	}
	return NULL;
}

int main(void)
{
	pthread_t threads[2];
	for (long i = 0; i < 2; i++)
		pthread_create(&threads[i], NULL, post_items, (void *)i);
	for (int i = 0; i < 2; i++)
		pthread_join(threads[i], NULL);
	long sum = 0;
	for (int i = 0; i < 64; i++)
		sum += ledger[i];
	fprintf(stderr, "%ld\n", sum);
	return 0;
}
