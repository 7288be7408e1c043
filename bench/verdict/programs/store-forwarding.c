/* Writes the bytes of a key one by one and reads them back as one word, which the store buffer can't serve;
 * the fix puts the word together in a register. */
#include <stdint.h>
#include <stdio.h>
#include <string.h>

__attribute__((noipa)) static uint64_t mix_keys(uint64_t keys)
{
	uint64_t sum = 1;
	volatile unsigned char key[8];
	(void)key;
	for (uint64_t i = 0; i < keys; i++) {
		uint64_t word;
#ifdef AFTER
		word = (sum & 0xff) | (i & 0xff) << 8 | (sum >> 8 & 0xff) << 16 | (i >> 8 & 0xff) << 24;
#else
		key[0] = sum;
		key[1] = i;
		key[2] = sum >> 8;
		key[3] = i >> 8;
		word = *(volatile uint32_t *)key; /* SLOW */
#endif
		sum = (sum ^ word) * 0x9e3779b97f4a7c15u >> 3;
	}
	return sum;
}

int main(void)
{
	fprintf(stderr, "%lu\n", mix_keys(200000000));
	return 0;
}
