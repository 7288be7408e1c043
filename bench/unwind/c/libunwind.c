// libunwind on a remote address space, set up as perf does: its global cache, tables found through .eh_frame_hdr.
#include <libunwind.h>

#include "corpus.h"

extern int UNW_OBJ(dwarf_search_unwind_table)(unw_addr_space_t, unw_word_t, unw_dyn_info_t *, unw_proc_info_t *, int,
                                              void *);

// The table of .eh_frame_hdr of one mapping.
struct table {
    uint64_t address, entries;
};
static struct table *tables;
static unw_addr_space_t space;

// What is being unwound.
struct state {
    const struct sample *sample;
    const uint64_t *registers;
    uint64_t base;
};

static int find_proc_info(unw_addr_space_t as, unw_word_t ip, unw_proc_info_t *info, int need, void *arg) {
    const struct mapping *mapping = mapping_at(ip);
    if (!mapping || !tables[mapping - mappings].address) return -UNW_ENOINFO;
    const struct table *table = &tables[mapping - mappings];
    unw_dyn_info_t found = {.format = UNW_INFO_FORMAT_REMOTE_TABLE, .start_ip = mapping->start, .end_ip = mapping->end};
    found.u.rti.segbase = table->address;
    found.u.rti.table_data = table->address + 12;
    found.u.rti.table_len = table->entries * 8 / sizeof(unw_word_t);
    return UNW_OBJ(dwarf_search_unwind_table)(as, ip, &found, info, need, arg);
}

static void put_unwind_info(unw_addr_space_t as, unw_proc_info_t *info, void *arg) {}

static int get_dyn_info_list_addr(unw_addr_space_t as, unw_word_t *list, void *arg) { return -UNW_ENOINFO; }

static int access_mem(unw_addr_space_t as, unw_word_t at, unw_word_t *word, int write, void *arg) {
    const struct state *state = arg;
    return !write && read_word(state->sample, state->base, at, word) ? 0 : -UNW_EINVAL;
}

static int access_reg(unw_addr_space_t as, unw_regnum_t number, unw_word_t *value, int write, void *arg) {
    const struct state *state = arg;
    if (write || number < 0 || number > UNW_X86_64_RIP) return -UNW_EBADREG;
    *value = state->registers[number];
    return 0;
}

static int access_fpreg(unw_addr_space_t as, unw_regnum_t number, unw_fpreg_t *value, int write, void *arg) {
    return -UNW_EINVAL;
}

static int resume(unw_addr_space_t as, unw_cursor_t *cursor, void *arg) { return -UNW_EINVAL; }

static int get_proc_name(unw_addr_space_t as, unw_word_t at, char *name, size_t size, unw_word_t *off, void *arg) {
    return -UNW_EINVAL;
}

static void set_up(void) {
    static unw_accessors_t accessors = {find_proc_info, put_unwind_info, get_dyn_info_list_addr, access_mem,
                                        access_reg,     access_fpreg,    resume,                 get_proc_name};
    tables = calloc(mapping_count, sizeof *tables);
    for (uint64_t i = 0; i < mapping_count; i++) {
        size_t size;
        const char *bytes = map_file(mappings[i].path, &size);
        if (!bytes) continue;
        const Elf64_Ehdr *header = (const Elf64_Ehdr *)bytes;
        const Elf64_Phdr *program = (const Elf64_Phdr *)(bytes + header->e_phoff);
        for (int p = 0; p < header->e_phnum; p++) {
            if (program[p].p_type != PT_GNU_EH_FRAME) continue;
            uint32_t entries;
            memcpy(&entries, bytes + program[p].p_offset + 8, 4);
            tables[i] = (struct table){mappings[i].bias + program[p].p_vaddr, entries};
        }
    }
    size_t before = allocated();
    space = unw_create_addr_space(&accessors, 0);
    unw_set_caching_policy(space, UNW_CACHE_GLOBAL);
    made_before = allocated() - before;
}

static void walk(const struct sample *sample) {
    struct state state = {sample, sample->registers, sample->registers[7]};
    unw_cursor_t cursor;
    caller_count = 0;
    if (unw_init_remote(&cursor, space, &state)) return;
    while (caller_count < LIMIT && unw_step(&cursor) > 0) {
        unw_word_t ip;
        unw_get_reg(&cursor, UNW_REG_IP, &ip);
        if (ip == 0) break;
        callers[caller_count++] = ip;
    }
}

// With everything forgotten before.
static int one_step(const struct step *step, const struct sample *sample, int times) {
    uint64_t registers[17];
    memcpy(registers, step->registers, sizeof registers);
    registers[16] -= step->is_return;
    struct state state = {sample, registers, sample->registers[7]};
    for (int time = 0; time < times; time++) {
        unw_cursor_t cursor;
        unw_flush_cache(space, 0, 0);
        unw_init_remote(&cursor, space, &state);
        unw_step(&cursor);
    }
    return 1;
}
