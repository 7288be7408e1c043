/* Sends each reading of 32 bytes on its own over TCP on this machine; the fix sends 512 at a time. */
#include <arpa/inet.h>
#include <netinet/tcp.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#ifdef AFTER
enum { GROUP = 512 };
#else
enum { GROUP = 1 };
#endif
enum { READINGS = 700000, SIZE = 32 };

__attribute__((noipa)) static void publish(int to)
{
	static char readings[GROUP * SIZE];
	int filled = 0;
	for (int i = 0; i < READINGS; i++) {
		memcpy(readings + filled, &i, sizeof i);
		filled += SIZE;
		if (filled == sizeof readings || i + 1 == READINGS) {
			if (send(to, readings, filled, 0) < 0) /* SLOW */
				return;
			filled = 0;
		}
	}
}

static void *collect(void *argument)
{
	static char buffer[65536];
	long got = 0;
	ssize_t size;
	int from = accept((int)(long)argument, NULL, NULL);
	while ((size = recv(from, buffer, sizeof buffer, 0)) > 0)
		got += size;
	return (void *)got;
}

int main(void)
{
	struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
	socklen_t length = sizeof address;
	int listener = socket(AF_INET, SOCK_STREAM, 0), to = socket(AF_INET, SOCK_STREAM, 0), one = 1;
	bind(listener, (struct sockaddr *)&address, sizeof address);
	listen(listener, 1);
	getsockname(listener, (struct sockaddr *)&address, &length);
	pthread_t collector;
	pthread_create(&collector, NULL, collect, (void *)(long)listener);
	connect(to, (struct sockaddr *)&address, sizeof address);
	setsockopt(to, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
	publish(to);
	shutdown(to, SHUT_WR);
	void *got;
	pthread_join(collector, &got);
	fprintf(stderr, "%ld\n", (long)got);
	return 0;
}
