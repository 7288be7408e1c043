/* Looks up an environment variable for each item; the fix reads it once. */
#include <stdio.h>
#include <stdlib.h>

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

static inline const char *verbosity(void)
{
#ifdef AFTER
	static const char *setting;
	if (!setting)
		setting = getenv("APP_VERBOSITY");
	return setting;
#else
	return getenv("APP_VERBOSITY"); /* SLOW */
#endif
}

__attribute__((noipa)) static unsigned long handle(unsigned long item)
{
	item = settle(item, 110);
	if (verbosity()[0] == '9')
		fprintf(stderr, "item %lu\n", item);
	return item;
}

int main(void)
{
	char name[32];
	for (int i = 0; i < 100; i++) {
		snprintf(name, sizeof name, "APP_OPTION_%d", i);
		setenv(name, "on", 1);
	}
	setenv("APP_VERBOSITY", "1", 1);
	unsigned long item = 1;
	for (int i = 0; i < 3000000; i++)
		item = handle(item);
	fprintf(stderr, "%lu\n", item);
	return 0;
}
