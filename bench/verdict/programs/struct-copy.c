/* Passes a structure of 8 KiB by value; the fix passes a pointer. */
#include <stdio.h>

struct profile {
	int version;
	int weights[2048];
};

static struct profile profile;

#ifdef AFTER
__attribute__((noipa)) static int score(const struct profile *profile, unsigned item)
{
	return profile->weights[item % 2048] * profile->version;
}
#define ARGUMENT &profile
#else
__attribute__((noipa)) static int score(struct profile profile, unsigned item)
{
	return profile.weights[item % 2048] * profile.version;
}
#define ARGUMENT profile
#endif

__attribute__((noipa)) static long score_all(unsigned items)
{
	long sum = 0;
	for (unsigned item = 0; item < items; item++)
		sum += score(ARGUMENT, item * 31); /* SLOW */
	return sum;
}

int main(void)
{
	profile.version = 3;
	for (int i = 0; i < 2048; i++)
		profile.weights[i] = i % 101;
	fprintf(stderr, "%ld\n", score_all(15000000));
	return 0;
}
