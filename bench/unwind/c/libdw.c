// libdw of elfutils on a process that is only a corpus: files reported once, one attached state for all samples.
#include <elfutils/libdwfl.h>

#include "corpus.h"

static Dwfl *dwfl;
static const struct sample *current;

static int no_elf(Dwfl_Module *m, void **u, const char *n, Dwarf_Addr b, char **f, Elf **e) { return -1; }
static int no_debug(Dwfl_Module *m, void **u, const char *n, Dwarf_Addr b, const char *f, const char *d, GElf_Word c,
                    char **p) {
    return -1;
}
static char *no_path;
static const Dwfl_Callbacks callbacks = {.find_elf = no_elf, .find_debuginfo = no_debug, .debuginfo_path = &no_path};

static pid_t next_thread(Dwfl *d, void *arg, void **thread_arg) {
    if (*thread_arg) return 0;
    *thread_arg = arg;
    return 1;
}

static bool get_thread(Dwfl *d, pid_t tid, void *arg, void **thread_arg) {
    *thread_arg = arg;
    return true;
}

static bool memory_read(Dwfl *d, Dwarf_Addr at, Dwarf_Word *word, void *arg) {
    return read_word(current, current->registers[7], at, word);
}

static bool set_initial_registers(Dwfl_Thread *thread, void *arg) {
    return dwfl_thread_state_registers(thread, 0, 17, current->registers);
}

static const Dwfl_Thread_Callbacks thread_callbacks = {.next_thread = next_thread,
                                                       .get_thread = get_thread,
                                                       .memory_read = memory_read,
                                                       .set_initial_registers = set_initial_registers};

static void set_up(void) {
    dwfl = dwfl_begin(&callbacks);
    dwfl_report_begin(dwfl);
    for (uint64_t i = 0; i < mapping_count; i++) {
        // A file with several executable mappings is reported once.
        if (i && !strcmp(mappings[i].path, mappings[i - 1].path) && mappings[i].bias == mappings[i - 1].bias) continue;
        size_t size;
        const char *bytes = map_file(mappings[i].path, &size);
        if (!bytes) continue;
        const Elf64_Ehdr *header = (const Elf64_Ehdr *)bytes;
        const Elf64_Phdr *program = (const Elf64_Phdr *)(bytes + header->e_phoff);
        uint64_t first = 0;
        for (int p = header->e_phnum - 1; p >= 0; p--)
            if (program[p].p_type == PT_LOAD) first = program[p].p_vaddr & -program[p].p_align;
        if (!dwfl_report_elf(dwfl, mappings[i].path, mappings[i].path, -1, mappings[i].bias + first, false))
            fprintf(stderr, "%s: %s\n", mappings[i].path, dwfl_errmsg(-1));
    }
    dwfl_report_end(dwfl, 0, 0);
    if (!dwfl_attach_state(dwfl, 0, 1, &thread_callbacks, &current)) {
        fprintf(stderr, "%s\n", dwfl_errmsg(-1));
        exit(1);
    }
}

static int frame(Dwfl_Frame *state, void *arg) {
    Dwarf_Addr pc;
    if (!dwfl_frame_pc(state, &pc, 0) || pc == 0 || caller_count == LIMIT) return DWARF_CB_ABORT;
    callers[caller_count++] = pc;
    return DWARF_CB_OK;
}

static void walk(const struct sample *sample) {
    current = sample;
    caller_count = 0;
    dwfl_getthread_frames(dwfl, 1, frame, 0);
    // The first is the sampled one.
    if (caller_count) memmove(callers, callers + 1, --caller_count * sizeof *callers);
}

static int one_step(const struct step *step, const struct sample *sample, int times) { return 0; }
