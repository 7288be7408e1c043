/* Probes a hash table of 128 MiB with one key after the other; the fix fetches the slots of 16 keys ahead. */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

enum { SLOTS = 16 << 20, KEYS = 10 << 20, PROBES = 60000000, AHEAD = 16 };

static uint64_t *slots;

static inline uint64_t place(uint64_t key)
{
	return key * 0x9e3779b97f4a7c15u >> 40;
}

static inline uint64_t key_of(uint64_t i)
{
	return (i * 0xbf58476d1ce4e5b9u >> 20) % (2 * KEYS) + 1;
}

static inline int contains(uint64_t key)
{
	for (uint64_t at = place(key);; at = (at + 1) % SLOTS) {
		if (slots[at] == key) /* SLOW */
			return 1;
		if (!slots[at])
			return 0;
	}
}

__attribute__((noipa)) static long count_known(uint64_t probes)
{
	long known = 0;
	for (uint64_t i = 0; i < probes; i++) {
#ifdef AFTER
		__builtin_prefetch(&slots[place(key_of(i + AHEAD))]);
#endif
		known += contains(key_of(i));
	}
	return known;
}

int main(void)
{
	slots = calloc(SLOTS, sizeof *slots);
	for (uint64_t key = 1; key <= KEYS; key += 4) {
		uint64_t at = place(key);
		while (slots[at])
			at = (at + 1) % SLOTS;
		slots[at] = key;
	}
	fprintf(stderr, "%ld\n", count_known(PROBES));
	return 0;
}
