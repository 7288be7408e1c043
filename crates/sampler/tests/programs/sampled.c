// Programs that sample themselves, selected by name. Each prints its results as words and numbers.
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "plumb_sampler.h"

#define CHECK(what) do { if (!(what)) { printf("failed line %d: %s\n", __LINE__, #what); exit(1); } } while (0)

// Every allocation of the process comes through here; one made while `at_work` can only come from a signal handler.
extern void *__libc_malloc(size_t), *__libc_calloc(size_t, size_t), *__libc_realloc(void *, size_t);
extern void __libc_free(void *);
static __thread volatile int at_work;
static volatile long allocations_at_work, allocations;
static void note(void) {
    __atomic_fetch_add(&allocations, 1, __ATOMIC_RELAXED);
    if (at_work) __atomic_fetch_add(&allocations_at_work, 1, __ATOMIC_RELAXED);
}
void *malloc(size_t size) { note(); return __libc_malloc(size); }
void *calloc(size_t count, size_t size) { note(); return __libc_calloc(count, size); }
void *realloc(void *old, size_t size) { note(); return __libc_realloc(old, size); }
void free(void *old) { if (old) note(); __libc_free(old); }

static double cpu(void) {
    struct timespec time;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
    return time.tv_sec + time.tv_nsec * 1e-9;
}

// Three hot functions, each placed by the linker in a section of its own.
#define HOT(name, step) \
    __attribute__((noinline, section("code_" #name))) unsigned long hot_##name(long n) { \
        volatile unsigned long sum = n; \
        for (long i = 0; i < n; i++) sum = sum * step + i; \
        return sum + 1; \
    } \
    extern char __start_code_##name[], __stop_code_##name[];
HOT(a, 3)
HOT(b, 5)
HOT(c, 7)
#define IN(pc, section) ((pc) >= (uint64_t)__start_##section && (pc) < (uint64_t)__stop_##section)

enum { THREADS = 8 };
static double times[3];
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

__attribute__((noinline, section("worker_code"))) static void *worker(void *unused) {
    CHECK(plumb_sampler_register_thread() == 0);
    double own[3] = {0}, end = cpu() + 0.4;
    unsigned long sum = 0;
    at_work = 1;
    errno = 4321;
    for (double now = cpu(); now < end;) {
        unsigned long (*functions[3])(long) = {hot_a, hot_b, hot_c};
        for (int i = 0; i < 3; i++) {
            sum += functions[i](20000L << i);
            double then = now;
            now = cpu();
            own[i] += now - then;
        }
    }
    CHECK(errno == 4321);
    at_work = 0;
    plumb_sampler_unregister_thread();
    pthread_mutex_lock(&lock);
    for (int i = 0; i < 3; i++) times[i] += own[i];
    pthread_mutex_unlock(&lock);
    return (void *)sum;
}
extern char __start_worker_code[], __stop_worker_code[];

struct seen { long samples, weight, rooted, hot[3]; };
static void each(void *data, const struct plumb_sampler_stack *stack) {
    struct seen *seen = data;
    int in_worker = 0;
    for (uint32_t i = 0; i < stack->count; i++) in_worker |= IN(stack->pcs[i], worker_code);
    seen->samples++;
    seen->weight += stack->weight;
    seen->rooted += stack->complete && in_worker;
    uint64_t leaf = stack->count ? stack->pcs[0] : 0;
    seen->hot[0] += IN(leaf, code_a) ? stack->weight : 0;
    seen->hot[1] += IN(leaf, code_b) ? stack->weight : 0;
    seen->hot[2] += IN(leaf, code_c) ? stack->weight : 0;
}

static void shares(unsigned clock) {
    struct plumb_sampler_options options = {.size = sizeof options, .clock = clock};
    CHECK(plumb_sampler_start(&options) == 0);
    CHECK(plumb_sampler_start(&options) == -EALREADY);
    pthread_t threads[THREADS];
    for (int i = 0; i < THREADS; i++) CHECK(pthread_create(&threads[i], NULL, worker, NULL) == 0);
    for (int i = 0; i < THREADS; i++) pthread_join(threads[i], NULL);
    struct plumb_sampler_statistics statistics;
    CHECK(plumb_sampler_statistics(&statistics) == 0);
    struct seen seen = {0};
    CHECK(plumb_sampler_drain(each, &seen) == (int64_t)(statistics.signals - statistics.dropped));
    CHECK(plumb_sampler_drain(each, &seen) == 0);
    printf("samples %ld weight %ld rooted %ld dropped %lu\n", seen.samples, seen.weight, seen.rooted, (long)statistics.dropped);
    printf("hot_a %ld hot_b %ld hot_c %ld\n", seen.hot[0], seen.hot[1], seen.hot[2]);
    printf("time_a %.6f time_b %.6f time_c %.6f\n", times[0], times[1], times[2]);
    printf("allocations_at_work %ld allocations %ld ticks %lu\n", allocations_at_work, allocations, (long)statistics.ticks);
    CHECK(plumb_sampler_stop() == 0);
    CHECK(plumb_sampler_stop() == -ESRCH);
}

static void burn(double seconds) {
    for (double end = cpu() + seconds; cpu() < end;) hot_a(1000);
}

static void *registered_until_its_end(void *unused) {
    CHECK(plumb_sampler_register_thread() == 0);
    CHECK(plumb_sampler_register_thread() == -EALREADY);
    burn(0.002);
    return unused;
}

static void threads_that_end(void) {
    CHECK(plumb_sampler_register_thread() == -ESRCH);
    CHECK(plumb_sampler_start(NULL) == 0);
    struct seen seen = {0};
    for (int round = 0; round < 50; round++) {
        pthread_t threads[4];
        for (int i = 0; i < 4; i++) CHECK(pthread_create(&threads[i], NULL, registered_until_its_end, NULL) == 0);
        for (int i = 0; i < 4; i++) pthread_join(threads[i], NULL);
        CHECK(plumb_sampler_drain(each, &seen) >= 0);
    }
    struct plumb_sampler_statistics statistics;
    CHECK(plumb_sampler_statistics(&statistics) == 0);
    printf("samples %ld signals %lu registered %lu\n", seen.samples, (long)statistics.signals, (long)statistics.threads);
    CHECK(plumb_sampler_stop() == 0);
}

static uint64_t plugin_start;
struct plugin { long samples, complete; };
static void in_plugin(void *data, const struct plumb_sampler_stack *stack) {
    struct plugin *seen = data;
    if (stack->count && stack->pcs[0] >= plugin_start && stack->pcs[0] < plugin_start + 4096) {
        seen->samples++;
        seen->complete += stack->complete;
    }
}

static void plugin(const char *path) {
    CHECK(plumb_sampler_start(NULL) == 0);
    CHECK(plumb_sampler_register_thread() == 0);
    burn(0.02);
    for (int round = 0; round < 10; round++) {
        void *library = dlopen(path, RTLD_NOW);
        CHECK(library != NULL);
        unsigned long (*work)(unsigned long) = (unsigned long (*)(unsigned long))dlsym(library, "plugin_work");
        plugin_start = (uint64_t)work & ~4095UL;
        for (double end = cpu() + 0.01; cpu() < end;) work(1000);
        CHECK(plumb_sampler_refresh() == 0);
        struct plugin seen = {0};
        CHECK(plumb_sampler_drain(in_plugin, &seen) >= 0);
        seen = (struct plugin){0};
        for (double end = cpu() + 0.02; cpu() < end;) work(1000);
        CHECK(plumb_sampler_drain(in_plugin, &seen) > 0);
        printf("plugin %ld complete %ld\n", seen.samples, seen.complete);
        CHECK(dlclose(library) == 0);
        burn(0.005);
    }
    CHECK(plumb_sampler_stop() == 0);
}

static void child(void) {
    CHECK(plumb_sampler_start(NULL) == 0);
    CHECK(plumb_sampler_register_thread() == 0);
    burn(0.02);
    struct plumb_sampler_statistics before, after;
    CHECK(plumb_sampler_statistics(&before) == 0);
    pid_t pid = fork();
    if (pid == 0) {
        burn(0.02);
        if (plumb_sampler_statistics(&after) != -ESRCH || plumb_sampler_start(NULL) != 0) _exit(2);
        if (plumb_sampler_register_thread() != 0) _exit(3);
        struct seen seen = {0};
        for (int round = 0; round < 50 && seen.samples < 5; round++) {
            burn(0.02);
            plumb_sampler_drain(each, &seen);
        }
        if (seen.samples < 5) _exit(4);
        if (plumb_sampler_stop() != 0) _exit(5);
        _exit(0);
    }
    int status;
    CHECK(waitpid(pid, &status, 0) == pid);
    printf("child %d\n", status);
    /* On a busy machine, some samples do not arrive. */
    for (int round = 0; round < 50; round++) {
        burn(0.02);
        CHECK(plumb_sampler_statistics(&after) == 0);
        if (after.signals > before.signals + 5) break;
    }
    printf("before %lu after %lu\n", (long)before.signals, (long)after.signals);
    CHECK(plumb_sampler_stop() == 0);
}

static volatile int foreign;
static void other(int signal, siginfo_t *info, void *context) {
    (void)signal, (void)context;
    foreign += info->si_code == SI_QUEUE || info->si_code == SI_TKILL;
}

static void shared_signal(void) {
    struct sigaction action = {.sa_sigaction = other, .sa_flags = SA_SIGINFO}, now;
    CHECK(sigaction(SIGRTMIN + 5, &action, NULL) == 0);
    struct plumb_sampler_options options = {.size = sizeof options, .signal = SIGRTMIN + 5};
    CHECK(plumb_sampler_start(&options) == 0);
    CHECK(plumb_sampler_register_thread() == 0);
    burn(0.02);
    CHECK(foreign == 0);
    pthread_kill(pthread_self(), SIGRTMIN + 5);
    CHECK(foreign == 1);
    struct plumb_sampler_statistics statistics;
    CHECK(plumb_sampler_statistics(&statistics) == 0);
    printf("signals %lu\n", (long)statistics.signals);
    plumb_sampler_unregister_thread();
    CHECK(plumb_sampler_stop() == 0);
    CHECK(sigaction(SIGRTMIN + 5, NULL, &now) == 0);
    CHECK(now.sa_sigaction == other);
}

static void full_queue(void) {
    struct plumb_sampler_options options = {.size = sizeof options, .ring_words = 64};
    CHECK(plumb_sampler_start(&options) == 0);
    CHECK(plumb_sampler_register_thread() == 0);
    burn(0.1);
    plumb_sampler_unregister_thread();
    struct plumb_sampler_statistics statistics;
    CHECK(plumb_sampler_statistics(&statistics) == 0);
    struct seen seen = {0};
    CHECK(plumb_sampler_drain(each, &seen) == (int64_t)(statistics.signals - statistics.dropped));
    printf("samples %ld signals %lu dropped %lu\n", seen.samples, (long)statistics.signals, (long)statistics.dropped);
    CHECK(plumb_sampler_stop() == 0);
}

static void text(void) {
    CHECK(plumb_sampler_start(NULL) == 0);
    CHECK(plumb_sampler_register_thread() == 0);
    burn(0.05);
    CHECK(plumb_sampler_write_folded(1) > 0);
    burn(0.05);
    CHECK(plumb_sampler_write_addresses(1) > 0);
    CHECK(plumb_sampler_stop() == 0);
}

int main(int argc, char **argv) {
    const char *what = argc > 1 ? argv[1] : "";
    if (!strcmp(what, "shares")) shares(0);
    else if (!strcmp(what, "posix")) shares(2);
    else if (!strcmp(what, "ends")) threads_that_end();
    else if (!strcmp(what, "plugin")) plugin(argv[2]);
    else if (!strcmp(what, "fork")) child();
    else if (!strcmp(what, "shared")) shared_signal();
    else if (!strcmp(what, "full")) full_queue();
    else if (!strcmp(what, "text")) text();
    else return 2;
    return 0;
}
