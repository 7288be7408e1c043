/* Clean: SHA-256 of 160 MiB that are in the cache. */
#include <stdint.h>
#include <stdio.h>

static uint32_t k[64];

static inline uint32_t turn(uint32_t x, int by)
{
	return x >> by | x << (32 - by);
}

__attribute__((noipa)) static void compress(uint32_t state[8], const uint32_t block[16])
{
	uint32_t w[64], s[8];
	for (int i = 0; i < 16; i++)
		w[i] = block[i];
	for (int i = 16; i < 64; i++)
		w[i] = w[i - 16] + (turn(w[i - 15], 7) ^ turn(w[i - 15], 18) ^ w[i - 15] >> 3) + w[i - 7] +
		       (turn(w[i - 2], 17) ^ turn(w[i - 2], 19) ^ w[i - 2] >> 10);
	for (int i = 0; i < 8; i++)
		s[i] = state[i];
#pragma GCC unroll 8
	for (int i = 0; i < 64; i++) {
		uint32_t t = s[7] + (turn(s[4], 6) ^ turn(s[4], 11) ^ turn(s[4], 25)) + ((s[4] & s[5]) ^ (~s[4] & s[6])) + k[i] + w[i];
		uint32_t u = (turn(s[0], 2) ^ turn(s[0], 13) ^ turn(s[0], 22)) + ((s[0] & s[1]) ^ (s[0] & s[2]) ^ (s[1] & s[2]));
		s[7] = s[6];
		s[6] = s[5];
		s[5] = s[4];
		s[4] = s[3] + t;
		s[3] = s[2];
		s[2] = s[1];
		s[1] = s[0];
		s[0] = t + u;
	}
	for (int i = 0; i < 8; i++)
		state[i] += s[i];
}

int main(void)
{
	uint32_t state[8] = {0x6a09e667, 0xbb67ae85, 0x3c6ef372, 0xa54ff53a, 0x510e527f, 0x9b05688c, 0x1f83d9ab, 0x5be0cd19};
	uint32_t blocks[64][16];
	for (uint32_t i = 0; i < 64; i++)
		k[i] = (i + 1) * 2654435761u;
	for (uint32_t i = 0; i < 64; i++)
		for (uint32_t j = 0; j < 16; j++)
			blocks[i][j] = (i * 16 + j) * 2246822519u;
	for (int round = 0; round < 5 << 20; round++)
		compress(state, blocks[round % 64]);
	fprintf(stderr, "%08x\n", state[0]);
	return 0;
}
