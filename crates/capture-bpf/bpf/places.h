/* SPDX-License-Identifier: MIT OR Apache-2.0 OR GPL-2.0 */
/* Samples at watched places: tracepoints and uprobes.
 *
 * The kernel has no event here that could take the samples: the events of a tracepoint share one list of programs, so that none may
 * withhold a sample from the others, and run only where no other program does. The programs decide which hits are samples. A stack
 * that can't be walked is sent through an event that exists for that: its copier, which copies the stack. Each hit of a followed task
 * is counted, and adds to the weight of the next sample. */
#ifndef PLUMB_PLACES_H
#define PLUMB_PLACES_H

struct {
    UINT(type, BPF_MAP_TYPE_ARRAY);
    UINT(max_entries, MAX_PLACES);
    TYPE(key, u32);
    TYPE(value, struct Place);
} places SEC(".maps");

struct {
    UINT(type, BPF_MAP_TYPE_PERCPU_ARRAY);
    UINT(max_entries, MAX_PLACES);
    TYPE(key, u32);
    TYPE(value, struct Tally);
} tallies SEC(".maps");

/* For each place, the copiers of all CPUs. */
struct {
    UINT(type, BPF_MAP_TYPE_ARRAY_OF_MAPS);
    UINT(max_entries, MAX_PLACES);
    TYPE(key, u32);
    __attribute__((aligned(8))) struct {
        UINT(type, BPF_MAP_TYPE_PERF_EVENT_ARRAY);
        UINT(max_entries, 1);
        UINT(key_size, 4);
        UINT(value_size, 4);
    } *values[];
} place_copiers SEC(".maps");

/* Sampling by time: a sample that is overdue by this many intervals is taken at the next hit. */
#define OVERDUE 4

/* Returns whether every hit is still a sample: up to PLACE_BURST hits at once, and from then on twice as many as sampling by time
 * takes. */
INLINE int is_rare(struct Place *place)
{
    if (!(place->flags & PLACE_LIMITED))
        return 1;
    u64 samples = __sync_fetch_and_add(&place->samples, 1);
    if (!samples)
        place->first_ns = bpf_ktime_get_ns();
    if (samples < PLACE_BURST)
        return 1;
    u64 elapsed = elapsed_ns(bpf_ktime_get_ns(), place->first_ns);
    return samples - PLACE_BURST < 2 * elapsed / (place->interval_ns | 1);
}

/* Returns whether a sample is due by time, at the given number of hits since the last one. The hit is chosen at random, so that hits
 * have equal chances whatever their order. */
INLINE int is_due(struct Place *place, struct Tally *tally, u64 since)
{
    u64 now = bpf_ktime_get_ns();
    u64 elapsed = elapsed_ns(now, tally->last_ns);
    if (since < tally->gap && elapsed < OVERDUE * place->interval_ns)
        return 0;
    u64 mean = since * place->interval_ns / (elapsed | 1);
    if (mean > 1u << 30)
        mean = 1u << 30;
    tally->last_ns = now;
    tally->gap = mean < 2 ? 1 : 1 + bpf_get_prandom_u32() % (2 * (u32)mean - 1);
    return 1;
}

/* Counts a hit. Returns the weight of its sample; 0: no sample. */
INLINE u64 pass(struct Place *place, struct Tally *tally)
{
    __sync_fetch_and_add(&tally->passed, 1);
    u64 since = __sync_fetch_and_add(&tally->since, 1) + 1;
    if (place->period == 1 && !is_rare(place))
        place->period = 0;
    if (place->period ? since < place->period : !is_due(place, tally, since))
        return 0;
    return __sync_lock_test_and_set(&tally->since, 0);
}

/* Handles a hit by the current task. The walk begins where user code entered the kernel, or at these registers. */
INLINE void at_place(void *ctx, struct user_pt_regs *regs)
{
    struct task_struct *task = bpf_get_current_task_btf();
    u32 number = bpf_get_attach_cookie(ctx);
    struct Place *place = bpf_map_lookup_elem(&places, &number);
    struct Tally *tally = bpf_map_lookup_elem(&tallies, &number);
    void *events = bpf_map_lookup_elem(&place_copiers, &number);
    struct Control *control = the_control();
    if (!place || !tally || !events || !control || place->flags & PLACE_OVER)
        return;
    if (place->call != NO_CALL && (call_of(task) != place->call || IS_COMPAT(task)))
        return;
    if (!is_followed(control, task))
        return;
    /* First used for the three numbers of an event: Linux 6.1 has no space for both on the stack of this program and all that it calls. */
    struct walking walking;
    if (place->flags & PLACE_SCOPED && bpf_perf_event_read_value(events, BPF_F_CURRENT_CPU, &walking, 3 * sizeof(u64)))
        return;
    u64 weight = 1;
    if (control->began)
        weight = pass(place, tally);
    else if (!is_due(place, tally, 1))
        weight = 0;
    if (!weight)
        return;
    __builtin_memset(&walking, 0, sizeof(walking));
    walking.draft = claim(&walking.walk.slot);
    u32 why = WHY_NESTED;
    if (walking.draft) {
        walking.begun = regs ? begin_where_sampled(&walking.walk, regs, task) : begin_where_left(&walking.walk, task);
        u32 flags = place->flags & PLACE_IN_KERNEL ? SAMPLE_IN_KERNEL : 0;
        why = take(ctx, task, &walking, flags, weight, number);
        give_back(walking.draft);
    }
    if (!control->began)
        return;
    add(COUNTER_WHY + (why & 15), 1);
    if (why == WHY_ROOT)
        return;
    if (place->flags & PLACE_IN_KERNEL)
        say_call(task);
    long error = bpf_perf_event_output(ctx, events, BPF_F_CURRENT_CPU, &weight, sizeof(weight));
    /* The event itself counts samples that do not fit into its buffer. */
    if (error && error != -ENOSPC)
        __sync_fetch_and_add(&tally->lost, 1);
}

SEC("raw_tp")
int on_tracepoint(void *ctx)
{
    at_place(ctx, 0);
    return 0;
}

SEC("uprobe")
int on_function(struct user_pt_regs *regs)
{
    at_place(regs, regs);
    return 0;
}

#endif
