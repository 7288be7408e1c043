/* Two threads count in neighbouring words of one cache line; the fix gives each a line of its own. */
#include <pthread.h>
#include <stdio.h>

#ifdef AFTER
#define APART 128
#else
#define APART 8
#endif

static struct {
	volatile long hits;
	char apart[APART];
} counters[2] __attribute__((aligned(256)));

static void *count_hits(void *argument)
{
	long which = (long)argument;
	unsigned seed = which + 1;
	for (int i = 0; i < 300000000; i++) {
		seed = seed * 1664525 + 1013904223;
		counters[which].hits += seed >> 31; /* SLOW */
	}
	return NULL;
}

int main(void)
{
	pthread_t threads[2];
	for (long i = 0; i < 2; i++)
		pthread_create(&threads[i], NULL, count_hits, (void *)i);
	for (int i = 0; i < 2; i++)
		pthread_join(threads[i], NULL);
	fprintf(stderr, "%ld\n", counters[0].hits + counters[1].hits);
	return 0;
}
