/* Has each record written to the disk before the next; the fix does so for 200 at a time. */
#include <fcntl.h>
#include <stdio.h>
#include <unistd.h>

#ifdef AFTER
enum { GROUP = 200 };
#else
enum { GROUP = 1 };
#endif

__attribute__((noipa)) static void append(int file, int number)
{
	char record[64];
	int length = snprintf(record, sizeof record, "record %08d balance %d\n", number, number % 977);
	if (write(file, record, length) != length)
		return;
	if ((number + 1) % GROUP == 0)
		fsync(file); /* SLOW */
}

int main(void)
{
	int file = open("ledger.log", O_CREAT | O_TRUNC | O_WRONLY, 0644);
	for (int number = 0; number < 600; number++)
		append(file, number);
	fprintf(stderr, "%ld\n", (long)lseek(file, 0, SEEK_CUR));
	return 0;
}
