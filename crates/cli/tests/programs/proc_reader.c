/* Lists /proc each second through a buffer of 8 KiB, as a daemon that calls Go's os.ReadDir did: ten times, so that samples meet it on a busy machine too. */
#define _GNU_SOURCE
#include <fcntl.h>
#include <sys/syscall.h>
#include <unistd.h>

__attribute__((noinline)) static long read_directory(const char *path)
{
    static char buffer[8192];
    long all = 0, got;
    int fd = open(path, O_RDONLY | O_DIRECTORY);
    while ((got = syscall(SYS_getdents64, fd, buffer, sizeof buffer)) > 0)
        all += got;
    close(fd);
    return all;
}

int main(void)
{
    volatile long all = 0;
    for (;;) {
        for (int i = 0; i < 10; i++)
            all += read_directory("/proc");
        sleep(1);
    }
}
