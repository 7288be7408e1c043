/* Opens and closes the log for each record; the fix keeps it open. */
#include <stdio.h>

__attribute__((noipa)) static void note(int number)
{
#ifdef AFTER
	static FILE *log;
	if (!log)
		log = fopen("app.log", "a");
#else
	FILE *log = fopen("app.log", "a"); /* SLOW */
#endif
	fprintf(log, "record %d\n", number);
#ifndef AFTER
	fclose(log);
#endif
}

int main(void)
{
	for (int number = 0; number < 250000; number++)
		note(number);
	fprintf(stderr, "done\n");
	return 0;
}
