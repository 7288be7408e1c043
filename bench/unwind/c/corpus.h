// Reads a corpus (see ../src/corpus.rs) and the ELF files of its mappings; runs an unwinder over it and says what it kept.
#include <elf.h>
#include <fcntl.h>
#include <malloc.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

enum { LIMIT = 4096, MAX_SEGMENTS = 4096 };

struct mapping {
    uint64_t start, end, bias;
    const char *path;
};
struct sample {
    const uint64_t *registers, *stack;
    uint64_t words;
};
struct step {
    uint64_t sample, is_return, known, registers[17];
};
// What a file loads where.
struct segment {
    uint64_t start, end;
    const char *bytes;
};

static struct mapping *mappings;
static uint64_t mapping_count;
static struct sample *samples;
static uint64_t sample_count;
static struct segment segments[MAX_SEGMENTS];
static int segment_count;
static uint64_t callers[LIMIT];
static uint64_t caller_count;

static void *map_file(const char *path, size_t *size) {
    int file = open(path, O_RDONLY);
    struct stat status;
    if (file < 0 || fstat(file, &status)) return 0;
    *size = status.st_size;
    void *bytes = mmap(0, status.st_size, PROT_READ, MAP_PRIVATE, file, 0);
    close(file);
    return bytes == MAP_FAILED ? 0 : bytes;
}

static void read_corpus(const char *path, uint64_t most) {
    size_t size;
    uint64_t *words = map_file(path, &size);
    if (!words) exit(2);
    mapping_count = words[1], sample_count = words[2];
    mappings = calloc(mapping_count, sizeof *mappings);
    samples = calloc(sample_count, sizeof *samples);
    words += 3;
    for (uint64_t i = 0; i < mapping_count; i++) {
        mappings[i] = (struct mapping){words[0], words[1], words[2], (const char *)&words[4]};
        words += 4 + words[3] / 8;
    }
    for (uint64_t i = 0; i < sample_count; i++) {
        samples[i] = (struct sample){words, words + 18, words[17]};
        words += 18 + words[17];
    }
    if (sample_count > most) sample_count = most;
}

static struct step *read_steps(const char *corpus, uint64_t *count) {
    char path[4096];
    snprintf(path, sizeof path, "%.*s.steps", (int)(strrchr(corpus, '.') - corpus), corpus);
    size_t size;
    uint64_t *words = map_file(path, &size);
    if (!words) exit(2);
    *count = words[1];
    return (struct step *)(words + 2);
}

static int by_start(const void *a, const void *b) {
    uint64_t x = ((const struct segment *)a)->start, y = ((const struct segment *)b)->start;
    return x < y ? -1 : x > y;
}

// Where the files' segments would be in memory: unwind tables are read from there.
static void read_files(void) {
    for (uint64_t i = 0; i < mapping_count; i++) {
        size_t size;
        const char *bytes = map_file(mappings[i].path, &size);
        if (!bytes) continue;
        const Elf64_Ehdr *header = (const Elf64_Ehdr *)bytes;
        const Elf64_Phdr *program = (const Elf64_Phdr *)(bytes + header->e_phoff);
        for (int p = 0; p < header->e_phnum; p++) {
            if (program[p].p_type != PT_LOAD || segment_count == MAX_SEGMENTS) continue;
            uint64_t start = mappings[i].bias + program[p].p_vaddr;
            segments[segment_count++] =
                (struct segment){start, start + program[p].p_filesz, bytes + program[p].p_offset};
        }
    }
    qsort(segments, segment_count, sizeof *segments, by_start);
}

static const struct mapping *mapping_at(uint64_t pc) {
    uint64_t low = 0, high = mapping_count;
    while (low < high) {
        uint64_t middle = (low + high) / 2;
        if (mappings[middle].end <= pc) low = middle + 1;
        else high = middle;
    }
    return low < mapping_count && mappings[low].start <= pc ? &mappings[low] : 0;
}

// A word of the copied stack or of a file.
static int read_word(const struct sample *sample, uint64_t base, uint64_t at, uint64_t *word) {
    if (at - base <= sample->words * 8 - 8 && sample->words) {
        memcpy(word, (const char *)sample->stack + (at - base), 8);
        return 1;
    }
    int low = 0, high = segment_count;
    while (low < high) {
        int middle = (low + high) / 2;
        if (segments[middle].end <= at) low = middle + 1;
        else high = middle;
    }
    // A table may be read by words up to its very end.
    if (low == segment_count || segments[low].start > at) return 0;
    uint64_t left = segments[low].end - at;
    *word = 0;
    memcpy(word, segments[low].bytes + (at - segments[low].start), left < 8 ? left : 8);
    return 1;
}

// Bytes set aside for remembering before the first walk.
static size_t made_before;

static size_t allocated(void) { return mallinfo2().uordblks + mallinfo2().hblkhd; }

// What an unwinder brings.
static void set_up(void);
static void walk(const struct sample *sample);
static int one_step(const struct step *step, const struct sample *sample, int times);

static void write_frames(const char *path) {
    FILE *out = fopen(path, "w");
    if (!out) exit(2);
    for (uint64_t i = 0; i < sample_count; i++) {
        walk(&samples[i]);
        uint64_t head[2] = {caller_count, 0};
        fwrite(head, 8, 2, out);
        fwrite(callers, 8, caller_count, out);
    }
    if (fclose(out)) exit(2);
}

// `MODE TIMES CORPUS SAMPLES`, or `frames OUT CORPUS SAMPLES`.
int main(int argc, char **argv) {
    if (argc != 5) return 2;
    int times = atoi(argv[2]);
    read_corpus(argv[3], strtoull(argv[4], 0, 10));
    read_files();
    set_up();
    if (!strcmp(argv[1], "frames")) {
        write_frames(argv[2]);
    } else if (!strcmp(argv[1], "warm")) {
        for (uint64_t i = 0; i < sample_count; i++)
            for (int time = 0; time < times; time++) walk(&samples[i]);
    } else if (!strcmp(argv[1], "cold")) {
        uint64_t count;
        const struct step *steps = read_steps(argv[3], &count);
        for (uint64_t i = 0; i < count; i++)
            if (steps[i].sample < sample_count && !one_step(&steps[i], &samples[steps[i].sample], times)) return 1;
    } else {
        size_t before = allocated();
        for (int time = 0; time < times; time++)
            for (uint64_t i = 0; i < sample_count; i++) walk(&samples[i]);
        printf("%zu\n", made_before + allocated() - before);
    }
    return 0;
}
