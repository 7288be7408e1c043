// Likewise, by virtual functions, lambdas and exceptions.
#include <chrono>
#include <cstdint>
#include <cstdlib>
#include <functional>
#include <memory>
#include <stdexcept>

constexpr int UNIT = 2000000;

struct Work {
    virtual ~Work() = default;
    virtual uint32_t run(uint32_t x) const = 0;
};

template <int UNITS> __attribute__((noinline)) uint32_t spin(uint32_t x)
{
    for (int i = 0; i < UNITS * UNIT; i++)
        x = x * 1664525u + 1013904223u;
    if (x == 12345)
        throw std::runtime_error("never");
    return x + UNITS;
}

struct sixty : Work {
    __attribute__((noinline)) uint32_t run(uint32_t x) const override { return spin<6>(x) + 1; }
};
struct thirty : Work {
    __attribute__((noinline)) uint32_t run(uint32_t x) const override { return spin<3>(x) + 1; }
};
struct ten : Work {
    __attribute__((noinline)) uint32_t run(uint32_t x) const override { return spin<1>(x) + 1; }
};

int main(int count, char **words)
{
    using clock = std::chrono::steady_clock;
    auto end = clock::now() + std::chrono::seconds(count > 1 ? std::atoi(words[1]) : 3);
    std::unique_ptr<Work> all[] = {std::make_unique<sixty>(), std::make_unique<thirty>(), std::make_unique<ten>()};
    uint32_t x = 1;
    while (clock::now() < end)
        for (auto &work : all) {
            std::function<uint32_t(uint32_t)> call = [&](uint32_t y) { return work->run(y) ^ 1; };
            try {
                x = call(x);
            } catch (const std::exception &) {
                x = 2;
            }
        }
    return x == 7;
}
