/* Compresses text by a hash of three bytes: well made, nothing to mend. */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { SIZE = 1 << 20, HASH = 1 << 12 };

__attribute__((noipa)) static size_t compress(const unsigned char *in, size_t size, unsigned char *out)
{
	static uint32_t last[HASH];
	size_t used = 0, at = 0;
	memset(last, 0, sizeof last);
	while (at + 4 < size) {
		uint32_t word;
		memcpy(&word, in + at, 4);
		uint32_t slot = (word & 0xffffff) * 2654435761u >> 20;
		size_t before = last[slot];
		last[slot] = (uint32_t)at;
		size_t length = 0;
		while (before < at && at + length < size && in[before + length] == in[at + length] && length < 255)
			length++;
		if (length >= 4) {
			out[used++] = 0xff;
			out[used++] = (unsigned char)length;
			at += length;
		} else {
			out[used++] = in[at++];
		}
	}
	return used;
}

int main(void)
{
	unsigned char *in = malloc(SIZE), *out = malloc(2 * SIZE);
	uint32_t state = 1;
	size_t total = 0;
	for (size_t i = 0; i < SIZE; i++) {
		state = state * 1664525 + 1013904223;
		in[i] = "etaoin shrdlu"[(state >> 24) % 13];
	}
	for (int round = 0; round < 40; round++)
		total += compress(in, SIZE, out);
	fprintf(stderr, "%zu\n", total);
	return 0;
}
