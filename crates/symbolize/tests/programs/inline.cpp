// What the tests symbolise: inlined calls over several levels and files, clones, lambdas, templates, local classes,
// functions without a line of their own, and calls that GCC moves out of line as cold.
#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <map>
#include <memory>
#include <stdexcept>
#include <string>
#include <vector>
#include "inline.h"

namespace shapes {
struct Shape {
    virtual ~Shape() = default;
    virtual double area() const = 0;
};
struct Square final : Shape {
    explicit Square(double side) : side(side) {}
    double area() const override { return squared(side); }
    double side;
};
template <typename T> struct Pair {
    T a, b;
    T sum() const { return add(a, b); }
};
} // namespace shapes

namespace {
int hidden(int n) {
    int total = 0;
    for (int i = 0; i < n; i++) total += mixed(i, total);
    return total;
}
__attribute__((noinline)) int cold_path(int n) {
    if (__builtin_expect(n > 1000, 0)) throw std::runtime_error("too much: " + std::to_string(n));
    return hidden(n) + mixed(n, 3);
}
} // namespace

static __attribute__((noinline)) long walk(const std::map<std::string, int>& counts) {
    long total = 0;
    for (const auto& [word, count] : counts) total += count * static_cast<long>(word.size());
    return total;
}

int main(int argc, char**) {
    std::map<std::string, int> counts;
    for (int i = 0; i < 100 * argc; i++) counts[std::to_string(mixed(i, argc))]++;
    std::vector<int> sorted;
    for (const auto& [word, count] : counts) sorted.push_back(static_cast<int>(word.size()) * count);
    auto by_last_digit = [argc](int a, int b) { return mixed(a, argc) % 10 < mixed(b, argc) % 10; };
    std::sort(sorted.begin(), sorted.end(), by_last_digit);
    struct Local {
        int value;
        __attribute__((noinline)) int twice() const { return add(value, value); }
    };
    std::unique_ptr<shapes::Shape> shape = std::make_unique<shapes::Square>(argc);
    shapes::Pair<double> pair{shape->area(), 2.0};
    std::printf("%ld %d %f %d\n", walk(counts), cold_path(argc), pair.sum(), Local{argc}.twice());
    return other_file(argc) == 0;
}
