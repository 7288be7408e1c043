/* Two threads add to one atomic counter; the fix counts in each thread and adds once. */
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>

static atomic_long total;

static void *count_events(void *argument)
{
	unsigned seed = (long)argument + 1;
	long mine = 0;
	for (int i = 0; i < 160000000; i++) {
		seed = seed * 1664525 + 1013904223;
#ifdef AFTER
		mine += seed >> 31;
#else
		atomic_fetch_add(&total, seed >> 31); /* SLOW */
#endif
	}
	atomic_fetch_add(&total, mine);
	return NULL;
}

int main(void)
{
	pthread_t threads[2];
	for (long i = 0; i < 2; i++)
		pthread_create(&threads[i], NULL, count_events, (void *)i);
	for (int i = 0; i < 2; i++)
		pthread_join(threads[i], NULL);
	fprintf(stderr, "%ld\n", atomic_load(&total));
	return 0;
}
