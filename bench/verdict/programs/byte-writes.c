/* Writes each short row with a write of its own; the fix collects 64 KiB. */
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

static void export_rows(int file, int rows)
{
#ifdef AFTER
	static char buffer[65536];
	size_t filled = 0;
#endif
	for (int i = 0; i < rows; i++) {
		char row[2] = {(char)('a' + i % 26), '\n'};
#ifdef AFTER
		if (filled + sizeof row > sizeof buffer) {
			if (write(file, buffer, filled) < 0)
				return;
			filled = 0;
		}
		memcpy(buffer + filled, row, sizeof row);
		filled += sizeof row;
#else
		if (write(file, row, sizeof row) < 0) /* SLOW */
			return;
#endif
	}
#ifdef AFTER
	if (write(file, buffer, filled) < 0)
		return;
#endif
}

int main(void)
{
	int file = open("rows.txt", O_CREAT | O_TRUNC | O_WRONLY, 0644);
	export_rows(file, 1400000);
	fprintf(stderr, "%ld\n", (long)lseek(file, 0, SEEK_CUR));
	return 0;
}
