/* Starts a thread for each small task; the fix does them in two threads. */
#include <pthread.h>
#include <stdio.h>

enum { TASKS = 60000 };

static long results[TASKS];

__attribute__((noipa)) static void task(long number)
{
	long sum = 0;
	for (long i = 0; i < 300; i++)
		sum += i * number % 7;
	results[number] = sum;
}

static void *one(void *number)
{
	task((long)number);
	return NULL;
}

static void *half(void *begin)
{
	for (long i = (long)begin; i < TASKS; i += 2)
		task(i);
	return NULL;
}

__attribute__((noipa)) static void all(void)
{
	pthread_t threads[2];
#ifdef AFTER
	for (long i = 0; i < 2; i++)
		pthread_create(&threads[i], NULL, half, (void *)i);
	for (int i = 0; i < 2; i++)
		pthread_join(threads[i], NULL);
#else
	(void)half;
	for (long i = 0; i < TASKS; i++) {
		pthread_create(&threads[0], NULL, one, (void *)i); /* SLOW */
		pthread_join(threads[0], NULL);
	}
#endif
}

int main(void)
{
	long sum = 0;
	(void)one;
	all();
	for (int i = 0; i < TASKS; i++)
		sum += results[i];
	fprintf(stderr, "%ld\n", sum);
	return 0;
}
