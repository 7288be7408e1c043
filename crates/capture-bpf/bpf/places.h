/* SPDX-License-Identifier: MIT OR Apache-2.0 OR GPL-2.0 */
/* Samples of places that are passed: tracepoints and uprobes.
 *
 * The kernel has no event of its own here that takes samples, as those of a tracepoint share one list of programs, so that
 * none may keep a sample from the others, and run only where no other program does. Which passing is a sample is decided here,
 * and what can't be walked is sent through an event that exists for that: its copier, which copies the stack. Each passing of
 * who is followed is counted, and stands in the weight of the next sample. */
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

/* For each place, those of all processors. */
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

/* By time, a sample that is overdue by so many intervals waits for no number of passings. */
#define OVERDUE 4

/* Whether each passing is a sample still: there may be so many at once, and twice as many as by time from then on. */
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

/* Whether a sample is due by time, after so many passings. Which of them it is, is left to chance: each counts as much as
 * another, whatever the order in which they come. */
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

/* Counts a passing. Returns the weight of its sample; 0: it has none. */
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

/* A place was passed: by the current task, whose walk begins where user code was left, or at these registers. */
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
    if (place->call != NO_CALL && (call_of(task) != place->call || is_compat(task)))
        return;
    if (!is_followed(control, task))
        return;
    /* First it has the three numbers of an event: Linux 6.1 has no room for both on the stack of this program and all that it calls. */
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
    /* The event itself counts what finds no room. */
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
