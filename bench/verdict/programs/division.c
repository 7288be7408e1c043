/* Reduces a hash by a divisor that is known only when the program runs; the fix multiplies and shifts. */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

__attribute__((noipa)) static uint64_t place_all(uint64_t keys, uint64_t shards)
{
	uint64_t sum = 0, key = 88172645463325252u;
	for (uint64_t i = 0; i < keys; i++) {
		key ^= key << 13;
		key ^= key >> 7;
		key ^= key << 17;
#ifdef AFTER
		uint64_t shard = (uint64_t)((unsigned __int128)key * shards >> 64);
#else
		uint64_t shard = key % shards; /* SLOW */
#endif
		key += shard;
		sum += shard;
	}
	return sum;
}

int main(int count, char **arguments)
{
	uint64_t shards = count > 1 ? strtoull(arguments[1], NULL, 10) : 1000003;
	fprintf(stderr, "%d\n", place_all(200000000, shards) > 0);
	return 0;
}
