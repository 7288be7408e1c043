/* Clean: writes and reads a file of 192 MiB, 1 MiB at a time. */
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

static char block[1 << 20];

int main(void)
{
	long sum = 0;
	memset(block, 'x', sizeof block);
	for (int round = 0; round < 20; round++) {
		int file = open("blocks.bin", O_CREAT | O_RDWR, 0644);
		for (int i = 0; i < 192; i++)
			if (write(file, block, sizeof block) < 0)
				return 1;
		lseek(file, 0, SEEK_SET);
		while (read(file, block, sizeof block) > 0)
			sum += block[sum % 1000];
		close(file);
	}
	fprintf(stderr, "%ld\n", sum);
	return 0;
}
