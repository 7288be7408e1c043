/* Samples the threads of its own process: the stack of each registered thread, up to a thousand times for each second
 * that it runs. Functions return 0 or a count, or a negative errno. All but the first and the last may be called from
 * any thread at any time, though not from a signal handler.
 *
 * Link with libplumb_sampler.so, or with libplumb_sampler.a -lpthread -ldl -lm. */
#ifndef PLUMB_SAMPLER_H
#define PLUMB_SAMPLER_H

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* 0 stands for the default in all fields but size. */
struct plumb_sampler_options {
    uint32_t size;         /* sizeof(struct plumb_sampler_options) */
    uint32_t frequency_hz; /* samples for each second of a thread's processor time: 1000 */
    int32_t signal;        /* the signal to use: the highest real-time signal without a handler */
    uint32_t clock;        /* 0: the best there is, 1: perf events, 2: POSIX timers */
    uint32_t ring_words;   /* words of eight bytes in each thread's queue: 65536 */
    uint32_t max_frames;   /* the most frames of a stack: 256 */
};

struct plumb_sampler_stack {
    int32_t tid;
    uint32_t weight;     /* how many periods it stands for */
    int32_t complete;    /* whether it reaches its root */
    uint32_t count;      /* number of addresses */
    const uint64_t *pcs; /* innermost first: the sampled instruction, then an address in each call */
};

struct plumb_sampler_statistics {
    uint64_t signals; /* signals that came, each of them a sample */
    uint64_t dropped; /* samples lost because a queue was full */
    uint64_t ticks;   /* time in the signal handler, in ticks of the time stamp counter */
    uint64_t threads; /* registered now */
};

/* Begins; NULL: with defaults. Threads are sampled once they have registered. */
int plumb_sampler_start(const struct plumb_sampler_options *options);
/* Has the calling thread sampled until it ends or is unregistered. */
int plumb_sampler_register_thread(void);
void plumb_sampler_unregister_thread(void);
/* To be called after dlopen(3) and dlclose(3), and when a compiler has written code. */
int plumb_sampler_refresh(void);
/* Hands over all samples that are waiting. The callback must not call these functions. */
int64_t plumb_sampler_drain(void (*each)(void *data, const struct plumb_sampler_stack *stack), void *data);
/* Hands them over as text: folded stacks for flame graphs, or addresses and mappings. */
int64_t plumb_sampler_write_folded(int fd);
int64_t plumb_sampler_write_addresses(int fd);
int plumb_sampler_statistics(struct plumb_sampler_statistics *out);
/* Ends. Samples that were not drained are gone. */
int plumb_sampler_stop(void);

#ifdef __cplusplus
}
#endif

#endif
