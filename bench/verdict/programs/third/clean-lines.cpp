// Sums a column by customer from text in memory by string_view and a reserved hash map: well made, nothing to mend.
#include <charconv>
#include <cstdio>
#include <string>
#include <string_view>
#include <unordered_map>

static std::string text(int lines) {
    std::string all;
    unsigned seed = 9;
    for (int i = 0; i < lines; i++) {
        seed = seed * 1664525u + 1013904223u;
        all += "c" + std::to_string(seed >> 21) + "," + std::to_string(seed >> 12) + ",EUR\n";
    }
    return all;
}

static void sum(std::string_view all, std::unordered_map<std::string_view, long> &totals) {
    while (!all.empty()) {
        size_t end = all.find('\n');
        std::string_view line = all.substr(0, end);
        size_t comma = line.find(',');
        long value = 0;
        std::from_chars(line.data() + comma + 1, line.data() + line.size(), value);
        totals[line.substr(0, comma)] += value;
        all.remove_prefix(end + 1);
    }
}

int main() {
    std::string all = text(200000);
    std::unordered_map<std::string_view, long> totals;
    totals.reserve(4096);
    for (int round = 0; round < 160; round++)
        sum(all, totals);
    long result = 0;
    for (const auto &[name, total] : totals)
        result += total % 1013 * (long)name.size();
    std::fprintf(stderr, "%ld\n", result);
}
