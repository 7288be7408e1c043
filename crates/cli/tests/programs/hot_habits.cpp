// Programs with a habit that rules of `plumb explain` know (bad), and the same without it (good).
//
//   hot_habits HABIT bad|good [MILLISECONDS]
//
// Both do other work as well, so that a habit is never all there is. `work` stands for it.

#include <pthread.h>
#include <regex.h>
#include <sys/mman.h>
#include <dlfcn.h>
#include <syslog.h>

#include <algorithm>
#include <charconv>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

static volatile uint64_t sink;
static uint64_t state = 88172645463325252ULL;

static inline uint64_t next() {
    state ^= state << 13;
    state ^= state >> 7;
    state ^= state << 17;
    return state;
}

// What a program is for: arithmetic that no rule is about.
__attribute__((noinline)) static void work(int rounds) {
    uint64_t sum = sink;
    for (int i = 0; i < rounds; i++) sum = sum * 6364136223846793005ULL + next();
    sink = sum;
}

__attribute__((noinline)) static void read_environment(bool bad) {
    static const char *known = getenv("HOT_HABIT_MODE");
    for (int i = 0; i < 100; i++) {
        const char *mode = bad ? getenv("HOT_HABIT_MODE") : known;
        work(mode ? 21 : 20);
    }
}

__attribute__((noinline)) static void allocate(bool bad) {
    static std::vector<char> kept(4096);
    for (int i = 0; i < 100; i++) {
        size_t size = 16 + next() % 2048;
        char *block = bad ? static_cast<char *>(malloc(size)) : kept.data();
        block[size - 1] = 1;
        asm volatile("" ::"r"(block) : "memory");
        work(10);
        if (bad) free(block);
    }
}

__attribute__((noinline)) static void copy(bool bad) {
    static std::vector<char> from(1 << 16, 'x'), to(1 << 16);
    if (bad) memcpy(to.data(), from.data(), to.size());
    asm volatile("" ::"r"(to.data()) : "memory");
    work(100);
}

__attribute__((noinline)) static void scan(bool bad) {
    static const std::string text(4000, 'x');
    for (int i = 0; i < 20; i++) {
        const char *start = text.c_str();
        asm volatile("" : "+r"(start));
        size_t length = bad ? strlen(start) : text.size();
        work(int(10 + length % 2));
    }
}

__attribute__((noinline)) static void hash(bool bad) {
    static const std::string key(60, 'k');
    for (int i = 0; i < 100; i++) {
        std::string_view view(key);
        asm volatile("" : "+r"(view));
        sink = sink + (bad ? std::hash<std::string_view>()(view) : view.size());
        work(5);
    }
}

__attribute__((noinline)) static void sort(bool bad) {
    static std::vector<uint64_t> numbers(2000);
    for (auto &number : numbers) number = next();
    if (bad) std::sort(numbers.begin(), numbers.end());
    sink = sink + *std::max_element(numbers.begin(), numbers.end());
    work(1000);
}

__attribute__((noinline)) static void match(bool bad) {
    static regex_t known;
    static bool is_known = regcomp(&known, "^[a-z]+=[0-9]+$", REG_EXTENDED) == 0;
    regex_t own;
    if (bad) regcomp(&own, "^[a-z]+=[0-9]+$", REG_EXTENDED);
    sink = sink + is_known + regexec(bad ? &own : &known, "size=120", 0, nullptr, 0);
    if (bad) regfree(&own);
    work(2000);
}

__attribute__((noinline)) static void format(bool bad) {
    char text[64];
    for (int i = 0; i < 100; i++) {
        uint64_t number = next();
        if (bad) snprintf(text, sizeof text, "%llu items at %d", (unsigned long long)number, i);
        else *std::to_chars(text, text + sizeof text - 1, number & 0xff).ptr = 0;
        sink = sink + text[0];
        work(10);
    }
}

__attribute__((noinline)) static void log(bool bad) {
    // What is masked is written nowhere.
    setlogmask(LOG_UPTO(LOG_EMERG));
    for (int i = 0; i < 100; i++) {
        if (bad) syslog(LOG_DEBUG, "item %d of %d", i, 100);
        work(10);
    }
}

__attribute__((noinline)) static int parse(int value) {
    if (value % 2) throw value;
    return value;
}

__attribute__((noinline)) static void fail(bool bad) {
    for (int i = 0; i < 100; i++) {
        try {
            sink = sink + parse(bad ? i : 2 * i);
        } catch (int value) {
            sink = sink + value;
        }
        work(50);
    }
}

__attribute__((noinline)) static void lock(bool bad) {
    static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
    if (!bad) pthread_mutex_lock(&mutex);
    for (int i = 0; i < 100; i++) {
        if (bad) pthread_mutex_lock(&mutex);
        work(3);
        if (bad) pthread_mutex_unlock(&mutex);
    }
    if (!bad) pthread_mutex_unlock(&mutex);
}

static void *one_task(void *) {
    work(50);
    return nullptr;
}

// A thread for each task.
__attribute__((noinline)) static void start(bool bad) {
    for (int i = 0; i < 20; i++) {
        pthread_t thread;
        if (bad && pthread_create(&thread, nullptr, one_task, nullptr) == 0)
            pthread_join(thread, nullptr);
        else
            one_task(nullptr);
        work(200);
    }
}

static void *idle(void *) {
    pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
    pthread_cond_t never = PTHREAD_COND_INITIALIZER;
    pthread_mutex_lock(&mutex);
    for (;;) pthread_cond_wait(&never, &mutex);
}

__attribute__((noinline)) static void share(bool bad) {
    // Counting is atomic once there are threads.
    static bool has_thread = [] {
        pthread_t thread;
        return pthread_create(&thread, nullptr, idle, nullptr) == 0;
    }();
    static auto number = std::make_shared<uint64_t>(has_thread);
    for (int i = 0; i < 100; i++) {
        if (bad) {
            std::shared_ptr<uint64_t> copy = number;
            asm volatile("" ::"r"(copy.get()) : "memory");
        }
        work(3);
    }
}

__attribute__((noinline)) static void ask_time(bool bad) {
    timespec now = {};
    // Long enough for the one reading of the good program, and those of main, to be next to nothing.
    for (int i = 0; i < 2000; i++) {
        if (bad || i == 0) clock_gettime(CLOCK_MONOTONIC, &now);
        sink = sink + now.tv_nsec;
        work(10);
    }
}

__attribute__((noinline)) static void draw(bool bad) {
    for (int i = 0; i < 100; i++) {
        sink = sink + (bad ? rand() : next());
        work(5);
    }
}

__attribute__((noinline)) static void load(bool bad) {
    if (bad) {
        // Mapped, relocated and unmapped each time.
        if (void *library = dlopen("libresolv.so.2", RTLD_NOW)) dlclose(library);
    }
    work(2000);
}

__attribute__((noinline)) static void touch(bool bad) {
    constexpr size_t size = 4 << 20;
    static char *kept = static_cast<char *>(calloc(1, size));
    void *fresh = bad ? mmap(nullptr, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0) : kept;
    for (size_t at = 0; at < size; at += 4096) static_cast<char *>(fresh)[at] = 1;
    if (bad) munmap(fresh, size);
    work(10000);
}

__attribute__((noinline)) static void divide(bool bad) {
    uint64_t number = ~0ULL, by = sink | (1ULL << 40);
    for (int i = 0; i < 1000; i++) {
        asm volatile("" : "+r"(by));
        number = bad ? ~(number / by) : ~(number >> 40);
    }
    sink = sink + number;
    work(100);
}

__attribute__((noinline)) static void add_locked(bool bad) {
    static uint64_t shared;
    for (int i = 0; i < 1000; i++) {
        if (bad) __atomic_fetch_add(&shared, 1, __ATOMIC_SEQ_CST);
        else asm volatile("incq %0" : "+m"(shared));
    }
    work(100);
}

// A chain through more memory than caches hold.
static std::vector<uint32_t> make_chain() {
    constexpr size_t most = 8 << 20;
    std::vector<uint32_t> order(most), links(most);
    for (size_t i = 0; i < most; i++) order[i] = uint32_t(i);
    for (size_t i = most - 1; i > 0; i--) std::swap(order[i], order[next() % (i + 1)]);
    for (size_t i = 0; i < most; i++) links[order[i]] = order[(i + 1) % most];
    return links;
}

__attribute__((noinline)) static void follow(bool bad) {
    static const std::vector<uint32_t> chain = bad ? make_chain() : std::vector<uint32_t>();
    static uint32_t at = 0;
    if (bad) for (int i = 0; i < 1000; i++) at = chain[at];
    else for (int i = 0; i < 1000; i++) at = at * 5 + 1;
    sink = sink + at;
    work(100);
}

// More variables than there are registers, or one.
__attribute__((noinline)) static void move_many() {
    uint64_t v[24] = {};
    for (int round = 0; round < 300; round++) {
#pragma GCC unroll 24
        for (int i = 0; i < 24; i++) {
            // The compiler is told that it is in memory.
            asm volatile("" : "+m"(v[i]));
            // Nothing else: some processors rename slots of the frame, so that what is computed takes as long as the accesses.
            v[i] ^= uint64_t(round);
        }
    }
    for (uint64_t one : v) sink = sink + one;
}

__attribute__((noinline)) static void move_one() {
    uint64_t one = sink;
    for (int round = 0; round < 3000; round++) one = (one * 5 ^ 0x5bd1e995) + round;
    sink = one;
}

static void spill(bool bad) {
    if (bad) move_many();
    else move_one();
    work(100);
}

struct Shape {
    double size = 2;
    virtual double area() const { return size; }
    virtual ~Shape() {}
};
struct Square : Shape {
    double area() const override { return size * size; }
};
struct Circle : Shape {
    double area() const override { return size * size * 3.14; }
};

// Shapes of three types in no order, or of one type that the compiler knows.
static void measure(bool bad) {
    static std::vector<Shape *> shapes;
    static std::vector<double> sizes(4096, 2.0);
    for (unsigned i = 0, state = 1; shapes.size() < 4096; i++) {
        state = state * 1103515245 + 12345;
        if (state >> 16 & 1) shapes.push_back(new Square);
        else if (state >> 17 & 1) shapes.push_back(new Circle);
        else shapes.push_back(new Shape);
    }
    double sum = 0;
    if (bad) for (const Shape *shape : shapes) sum += shape->area();
    else for (double size : sizes) sum += size * size;
    sink = sum;
    work(100);
}

// Steps of a program of six operations, each by a jump through a table; or the same operations one after the other.
__attribute__((noinline)) static long interpret(const unsigned char *code, long count) {
    static const void *const steps[] = {&&add, &&subtract, &&shift, &&mix, &&invert, &&double_it};
    long value = 1;
    const unsigned char *end = code + count;
#define NEXT if (code == end) return value; goto *steps[*code++]
    NEXT;
add: value += 3; NEXT;
subtract: value -= 7; NEXT;
shift: value >>= 1; NEXT;
mix: value ^= 0x55; NEXT;
invert: value = ~value; NEXT;
double_it: value *= 2; NEXT;
}

static void dispatch(bool bad) {
    static std::vector<unsigned char> code;
    for (unsigned state = 1; code.size() < 4096;) {
        state = state * 1103515245 + 12345;
        code.push_back((state >> 16) % 6);
    }
    long value = 1;
    if (bad) value = interpret(code.data(), code.size());
    else for (int i = 0; i < 4096; i++) value = ~((((value + 3) - 7) >> 1) ^ 0x55) * 2;
    sink = value;
    work(100);
}

// Four bytes stored one by one and loaded as a word, or stored as a word.
static void put_together(bool bad) {
    volatile unsigned char bytes[8];
    volatile unsigned *word = (volatile unsigned *)bytes;
    unsigned value = 1;
    for (int i = 0; i < 4096; i++) {
        if (bad) bytes[0] = value, bytes[1] = i, bytes[2] = value >> 8, bytes[3] = i >> 8;
        else *word = value + i;
        value = (value ^ *word) * 0x9e3779b9u;
    }
    sink = value;
    work(100);
}

struct Habit {
    const char *name;
    void (*run)(bool);
};

static const Habit habits[] = {
    {"getenv-hot", read_environment}, {"allocation", allocate}, {"copying", copy}, {"string-scan", scan},
    {"hashing", hash}, {"sorting", sort}, {"regex-compile", match}, {"formatting", format}, {"logging", log},
    {"exceptions", fail}, {"locks", lock}, {"reference-counts", share}, {"clock-reads", ask_time},
    {"random-numbers", draw}, {"dynamic-linking", load}, {"first-touch", touch}, {"division", divide},
    {"atomics", add_locked}, {"cache-miss", follow}, {"stack-traffic", spill},
    {"virtual-calls", measure}, {"interpreter-dispatch", dispatch}, {"store-forwarding", put_together},
    {"thread-start", start},
};

int main(int argc, char **argv) {
    if (argc < 3) return 2;
    int lasts = argc > 3 ? atoi(argv[3]) : 300;
    bool bad = strcmp(argv[2], "bad") == 0;
    for (const Habit &habit : habits) {
        if (strcmp(habit.name, argv[1]) != 0) continue;
        // Processor time: a busy machine leaves no fewer samples. The clock is asked rarely: asking it often is a habit too.
        auto until = std::clock() + std::clock_t(lasts) * CLOCKS_PER_SEC / 1000;
        while (std::clock() < until) {
            for (int i = 0; i < 50; i++) habit.run(bad);
        }
        return 0;
    }
    return 2;
}
