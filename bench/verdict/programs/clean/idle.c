/* Clean: a service with nothing to do waits for an event for 1.5 seconds. */
#include <poll.h>
#include <stdio.h>
#include <unistd.h>

int main(void)
{
	int ends[2];
	if (pipe(ends))
		return 1;
	struct pollfd event = {.fd = ends[0], .events = POLLIN};
	fprintf(stderr, "%d\n", poll(&event, 1, 1500));
	return 0;
}
