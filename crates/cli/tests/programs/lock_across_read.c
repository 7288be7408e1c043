/* Four threads ask for records, each by a socket of its own that answers after 8 ms, and put them into one table. With an argument they take the lock
 * of the table for that alone; without, they hold it while they wait for the answer. */
#include <pthread.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static long table[256];
static int is_short;

static int fetch_record(int fd) {
    char question = 'q', answer[64];
    if (write(fd, &question, 1) != 1) return 0;
    return read(fd, answer, sizeof answer) > 0 ? answer[0] : 0;
}

static void update_table(int by) {
    for (int i = 0; i < 50000; i++) table[(by + i) & 255] += i;
}

static void *answer(void *of) {
    int fd = (int)(long)of;
    char text[64];
    while (read(fd, text, sizeof text) > 0) {
        usleep(8000);
        memset(text, 7, sizeof text);
        if (write(fd, text, sizeof text) < 0) break;
    }
    return 0;
}

static void *ask(void *of) {
    int fd = (int)(long)of;
    for (int i = 0; i < 80; i++) {
        int record = is_short ? fetch_record(fd) : 0;
        pthread_mutex_lock(&lock);
        update_table(is_short ? record : fetch_record(fd));
        pthread_mutex_unlock(&lock);
    }
    shutdown(fd, SHUT_WR);
    return 0;
}

int main(int count, char **words) {
    (void)words;
    is_short = count > 1;
    pthread_t threads[8];
    for (int i = 0; i < 8; i += 2) {
        int pair[2];
        if (socketpair(AF_UNIX, SOCK_STREAM, 0, pair)) return 1;
        pthread_create(&threads[i], 0, answer, (void *)(long)pair[0]);
        pthread_create(&threads[i + 1], 0, ask, (void *)(long)pair[1]);
    }
    for (int i = 0; i < 8; i++) pthread_join(threads[i], 0);
    return 0;
}
