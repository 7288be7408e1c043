// Writes an HTML table into one string by `page = page + ...`, which copies all of it for each row; the fix appends.
#include <cstdio>
#include <string>
#include <vector>

struct Reading {
    std::string station;
    int hour;
    double celsius;
};

static std::vector<Reading> readings(int count) {
    std::vector<Reading> all;
    unsigned seed = 5;
    for (int i = 0; i < count; i++) {
        seed = seed * 1103515245u + 12345u;
        all.push_back({"station-" + std::to_string(seed >> 20), i % 24, (seed >> 16) % 400 / 10.0});
    }
    return all;
}

__attribute__((noinline)) static std::string row(const Reading &one) {
    std::string text = "<tr><td>";
    text += one.station;
    text += "</td><td>";
    text += std::to_string(one.hour);
    text += "</td><td>";
    text += std::to_string(one.celsius);
    text += "</td></tr>\n";
    return text;
}

__attribute__((noinline)) static std::string table(const std::vector<Reading> &all) {
    std::string page = "<table>\n";
    for (const auto &one : all) {
#ifdef AFTER
        page += row(one);
#else
        page = page + row(one); // SLOW
#endif
    }
    return page + "</table>\n";
}

int main() {
    auto all = readings(20000);
    std::string page = table(all);
    unsigned sum = 0;
    for (unsigned char c : page)
        sum = sum * 31 + c;
    std::fprintf(stderr, "%zu %u\n", page.size(), sum);
}
