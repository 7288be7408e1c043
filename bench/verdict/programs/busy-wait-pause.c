/* A consumer spins on a flag with the pause instruction until a producer has the next block; the fix waits on a condition variable. */
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>

enum { BLOCKS = 450 };

static atomic_int ready;
static unsigned long block;
#ifdef AFTER
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t changed = PTHREAD_COND_INITIALIZER;
#endif

static void wait_until(int value)
{
#ifdef AFTER
	pthread_mutex_lock(&lock);
	while (atomic_load(&ready) != value)
		pthread_cond_wait(&changed, &lock);
	pthread_mutex_unlock(&lock);
#else
	while (atomic_load_explicit(&ready, memory_order_acquire) != value) /* SLOW */
		__builtin_ia32_pause();
#endif
}

static void tell(int value)
{
#ifdef AFTER
	pthread_mutex_lock(&lock);
	atomic_store(&ready, value);
	pthread_cond_broadcast(&changed);
	pthread_mutex_unlock(&lock);
#else
	atomic_store_explicit(&ready, value, memory_order_release);
#endif
}

static void *produce(void *unused)
{
	(void)unused;
	unsigned long x = 88172645463325252u;
	for (int i = 0; i < BLOCKS; i++) {
		for (int step = 0; step < 800000; step++) {
			x ^= x << 13;
			x ^= x >> 7;
			x ^= x << 17;
		}
		block = x;
		tell(1);
		wait_until(0);
	}
	return NULL;
}

__attribute__((noipa)) static unsigned long consume(void)
{
	unsigned long sum = 0;
	for (int i = 0; i < BLOCKS; i++) {
		wait_until(1);
		sum += block;
		tell(0);
	}
	return sum;
}

int main(void)
{
	pthread_t producer;
	pthread_create(&producer, NULL, produce, NULL);
	unsigned long sum = consume();
	pthread_join(producer, NULL);
	fprintf(stderr, "%lu\n", sum);
	return 0;
}
