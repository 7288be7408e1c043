/* localtime() looks at /etc/localtime in each call while TZ is unset; localtime_r() doesn't. */
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

/* The rest of the work: what a fix leaves. */
__attribute__((noipa)) static unsigned long settle(unsigned long value, int steps)
{
	while (steps--) {
		value ^= value << 13;
		value ^= value >> 7;
		value ^= value << 17;
	}
	return value;
}

static long stamp_all(long events)
{
	long sum = 0;
	for (long i = 0; i < events; i++) {
		time_t when = 1500000000 + i * 60;
#ifdef AFTER
		struct tm parts, *at = localtime_r(&when, &parts);
#else
		struct tm *at = localtime(&when); /* SLOW */
#endif
		sum += at->tm_hour * 60 + at->tm_min + (settle(i + 1, 600) & 7);
	}
	return sum;
}

int main(void)
{
	unsetenv("TZ");
	tzset();
	fprintf(stderr, "%ld\n", stamp_all(700000));
	return 0;
}
