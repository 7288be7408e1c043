/* Maps and unmaps 2 MiB of scratch memory for each request; the fix keeps it. */
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>

enum { SIZE = 2 << 20, REQUESTS = 900 };

__attribute__((noipa)) static long serve(int request)
{
	long sum = 0;
#ifdef AFTER
	static unsigned char *scratch;
	if (!scratch)
#else
	unsigned char *
#endif
		scratch = mmap(NULL, SIZE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0); /* SLOW */
	memset(scratch, request, SIZE);
	for (int i = 0; i < SIZE; i += 16)
		sum += scratch[i];
#ifndef AFTER
	munmap(scratch, SIZE);
#endif
	return sum;
}

int main(void)
{
	long sum = 0;
	for (int request = 0; request < REQUESTS; request++)
		sum += serve(request);
	fprintf(stderr, "%ld\n", sum);
	return 0;
}
