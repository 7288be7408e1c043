/* Opens its journal with O_SYNC, so that each small entry waits for the disk; the fix writes them in one go. */
#define _GNU_SOURCE
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

enum { ENTRIES = 1500 };

__attribute__((noipa)) static void append(int file, const char *entry)
{
	if (write(file, entry, strlen(entry)) < 0) /* SLOW */
		perror("write");
}

int main(void)
{
	char entry[64], all[ENTRIES * 40];
	size_t used = 0;
	int file = open("journal", O_WRONLY | O_CREAT | O_TRUNC | O_SYNC, 0600);
	for (int i = 0; i < ENTRIES; i++) {
		int length = snprintf(entry, sizeof entry, "entry %d is done\n", i);
#ifdef AFTER
		memcpy(all + used, entry, length + 1);
		used += length;
#else
		used += length;
		append(file, entry);
		(void)all;
#endif
	}
#ifdef AFTER
	append(file, all);
#endif
	fprintf(stderr, "%zu\n", used);
	return close(file);
}
