// What operations cost that rules of `plumb explain` are about: nanoseconds each, the least of some rounds.
//
//   c++ -std=c++17 -O2 -pthread costs.cpp -o costs && ./costs

#include <pthread.h>
#include <regex.h>

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
static constexpr int ROUNDS = 15;

template <class F>
static void measure(const char *what, int times, F once) {
    double least = 1e18;
    for (int round = 0; round < ROUNDS; round++) {
        auto begin = std::chrono::steady_clock::now();
        for (int i = 0; i < times; i++) once(i);
        std::chrono::duration<double, std::nano> took = std::chrono::steady_clock::now() - begin;
        least = std::min(least, took.count() / times);
    }
    std::printf("| %s | %.1f |\n", what, least);
}

__attribute__((noinline)) static int fail(int value) { throw value; }
__attribute__((noinline)) static int deep(int value, int depth) {
    int result = depth ? deep(value, depth - 1) : fail(value);
    asm volatile("" : "+r"(result));
    return result;
}

static void *idle(void *) {
    pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
    pthread_cond_t never = PTHREAD_COND_INITIALIZER;
    pthread_mutex_lock(&mutex);
    for (;;) pthread_cond_wait(&never, &mutex);
}

int main() {
    clearenv();
    for (int i = 0; i < 30; i++) setenv(("VARIABLE_" + std::to_string(i)).c_str(), "value", 1);
    std::printf("| operation | ns |\n|---|---:|\n");
    measure("getenv of a variable that is not set, among 30", 100000, [](int) { sink = sink + (getenv("HOT_PATH") != nullptr); });
    measure("malloc and free of 100 bytes", 100000, [](int) {
        void *block = malloc(100);
        asm volatile("" : "+r"(block)::"memory");
        free(block);
    });
    static std::string text(4000, 'x');
    measure("strlen of 4,000 bytes", 10000, [](int) {
        const char *start = text.c_str();
        asm volatile("" : "+r"(start));
        sink = sink + strlen(start);
    });
    static std::string key(60, 'k');
    measure("std::hash of 60 bytes", 100000, [](int) {
        std::string_view view(key);
        asm volatile("" : "+r"(view));
        sink = sink + std::hash<std::string_view>()(view);
    });
    measure("regcomp and regfree of ^[a-z]+=[0-9]+$", 200, [](int) {
        regex_t made;
        sink = sink + regcomp(&made, "^[a-z]+=[0-9]+$", REG_EXTENDED);
        regfree(&made);
    });
    static regex_t made;
    regcomp(&made, "^[a-z]+=[0-9]+$", REG_EXTENDED);
    measure("regexec of it on size=120", 5000, [](int) { sink = sink + regexec(&made, "size=120", 0, nullptr, 0); });
    static char buffer[64];
    measure("snprintf of %d", 50000, [](int i) { sink = sink + snprintf(buffer, sizeof buffer, "%d", i); });
    measure("std::to_chars of the same", 50000, [](int i) { sink = sink + *std::to_chars(buffer, buffer + 32, i).ptr; });
    measure("throw through 1 frame, and catch", 2000, [](int i) { try { sink = sink + deep(i, 0); } catch (int value) { sink = value; } });
    measure("throw through 10 frames, and catch", 2000, [](int i) { try { sink = sink + deep(i, 9); } catch (int value) { sink = value; } });
    static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
    measure("pthread_mutex_lock and unlock, no contention", 100000, [](int) { pthread_mutex_lock(&mutex); pthread_mutex_unlock(&mutex); });
    static auto number = std::make_shared<uint64_t>(1);
    auto copy = [](int) { auto other = number; asm volatile("" ::"r"(other.get()) : "memory"); };
    measure("copy and drop of a shared_ptr, one thread", 100000, copy);
    pthread_t thread;
    pthread_create(&thread, nullptr, idle, nullptr);
    measure("copy and drop of a shared_ptr, two threads", 100000, copy);
    measure("clock_gettime", 100000, [](int) { timespec now; clock_gettime(CLOCK_MONOTONIC, &now); sink = now.tv_nsec; });
    measure("rand, two threads", 100000, [](int) { sink = sink + rand(); });
    static uint64_t value = ~0ULL;
    static volatile uint64_t by = (1ULL << 40) + 1;
    measure("division of 64 bits, each waiting for the last", 100000, [](int) { value = ~(value / by); });
    measure("atomic add, one thread", 100000, [](int) { __atomic_fetch_add(&value, 1, __ATOMIC_SEQ_CST); });
    constexpr size_t most = 16 << 20;
    static std::vector<uint32_t> chain(most);
    std::vector<uint32_t> order(most);
    uint64_t state = 88172645463325252ULL;
    for (size_t i = 0; i < most; i++) order[i] = uint32_t(i);
    for (size_t i = most - 1; i > 0; i--) {
        state ^= state << 13, state ^= state >> 7, state ^= state << 17;
        std::swap(order[i], order[state % (i + 1)]);
    }
    for (size_t i = 0; i < most; i++) chain[order[i]] = order[(i + 1) % most];
    static uint32_t at = 0;
    measure("load from 64 MiB at random, each address from the last", 100000, [](int) { at = chain[at]; });
    sink = at;
}
