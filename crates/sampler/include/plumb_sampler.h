/* Samples the threads of its own process: the stack of each registered thread, up to a thousand times per second of its
 * CPU time. Functions return 0 or a count, or a negative errno. All except plumb_sampler_start and plumb_sampler_stop
 * may be called from any thread at any time, but not from a signal handler.
 *
 * Link with libplumb_sampler.so, or with libplumb_sampler.a -lpthread -ldl -lm. */
#ifndef PLUMB_SAMPLER_H
#define PLUMB_SAMPLER_H

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* In all fields except size, 0 selects the default, which is given after the colon. */
struct plumb_sampler_options {
    uint32_t size;         /* sizeof(struct plumb_sampler_options) */
    uint32_t frequency_hz; /* samples per second of a thread's CPU time: 1000 */
    int32_t signal;        /* signal to use: the highest real-time signal without a handler */
    uint32_t clock;        /* 0: the best available, 1: perf events, 2: POSIX timers */
    uint32_t ring_words;   /* size of each thread's queue in 8-byte words: 65536 */
    uint32_t max_frames;   /* maximum number of frames of a stack: 256 */
};

struct plumb_sampler_stack {
    int32_t tid;
    uint32_t weight;     /* number of periods that the sample represents */
    int32_t complete;    /* 1 if the stack reaches its root, 0 if it is truncated */
    uint32_t count;      /* number of addresses */
    const uint64_t *pcs; /* innermost first: the sampled instruction, then an address in each call */
};

struct plumb_sampler_statistics {
    uint64_t signals; /* signals received, each of them a sample */
    uint64_t dropped; /* samples lost because a queue was full */
    uint64_t ticks;   /* time in the signal handler, in ticks of the time stamp counter */
    uint64_t threads; /* currently registered threads */
};

/* Starts sampling; NULL selects the defaults. A thread is sampled once it has registered. */
int plumb_sampler_start(const struct plumb_sampler_options *options);
/* Samples the calling thread from now on, until it ends or is unregistered. */
int plumb_sampler_register_thread(void);
void plumb_sampler_unregister_thread(void);
/* Updates the map of loaded code. Call it after dlopen(3), dlclose(3), and after a JIT compiler has written code. */
int plumb_sampler_refresh(void);
/* Passes all queued samples to the callback, which must not call these functions. Returns their number. */
int64_t plumb_sampler_drain(void (*each)(void *data, const struct plumb_sampler_stack *stack), void *data);
/* Drain the queues and write text: folded stacks for flame graphs, or addresses and mappings. Return the number of samples. */
int64_t plumb_sampler_write_folded(int fd);
int64_t plumb_sampler_write_addresses(int fd);
int plumb_sampler_statistics(struct plumb_sampler_statistics *out);
/* Stops sampling. Samples that were not drained are lost. */
int plumb_sampler_stop(void);

#ifdef __cplusplus
}
#endif

#endif
