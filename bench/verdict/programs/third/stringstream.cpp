// Splits lines and reads their numbers by a std::stringstream for each field; the fix uses from_chars.
#include <charconv>
#include <cstdio>
#include <sstream>
#include <string>
#include <vector>

static std::vector<std::string> lines(int count) {
    std::vector<std::string> all;
    unsigned seed = 3;
    for (int i = 0; i < count; i++) {
        std::string line;
        for (int k = 0; k < 6; k++) {
            seed = seed * 1664525u + 1013904223u;
            line += std::to_string(seed >> 12) + (k < 5 ? ";" : "");
        }
        all.push_back(line);
    }
    return all;
}

__attribute__((noinline)) static int to_int(const std::string &text) {
    int value = 0;
#ifdef AFTER
    std::from_chars(text.data(), text.data() + text.size(), value);
#else
    std::stringstream stream(text); // SLOW
    stream >> value;                // SLOW
#endif
    return value;
}

static std::vector<int> fields(const std::string &line) {
    std::vector<int> all;
    size_t from = 0;
    while (from <= line.size()) {
        size_t to = line.find(';', from);
        if (to == std::string::npos)
            to = line.size();
        all.push_back(to_int(line.substr(from, to - from)));
        from = to + 1;
    }
    return all;
}

int main() {
    long sums[6] = {0};
    auto all = lines(2000);
    for (int round = 0; round < 300; round++)
        for (const auto &line : all) {
            auto row = fields(line);
            for (size_t i = 0; i < row.size(); i++)
                sums[i] += row[i] % (round + 2);
        }
    long sum = 0;
    for (long one : sums)
        sum = sum * 3 + one;
    std::fprintf(stderr, "%ld\n", sum);
}
