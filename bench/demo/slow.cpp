// What `make demo` records: a word counter with a mistake that a profile shows at once. It asks for the ten most
// frequent words after every paragraph, and each time copies and sorts the whole table to get them.
#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

namespace text {

class Source {
public:
    explicit Source(uint64_t seed) : state_(seed) {}

    std::string word() {
        std::string word;
        for (int length = 2 + next() % 3; length > 0; length--) word += "aeinorst"[next() % 8];
        return word;
    }

    std::string paragraph(int words) {
        std::string paragraph;
        while (words-- > 0) paragraph += word() + ' ';
        return paragraph;
    }

private:
    uint64_t next() {
        state_ ^= state_ << 13, state_ ^= state_ >> 7, state_ ^= state_ << 17;
        return state_ >> 11;
    }
    uint64_t state_;
};

std::vector<std::string> split(const std::string &text) {
    std::vector<std::string> words;
    for (size_t from = 0, to; (to = text.find(' ', from)) != std::string::npos; from = to + 1)
        words.push_back(text.substr(from, to - from));
    return words;
}

}  // namespace text

class Counter {
public:
    void add(const std::string &word) { counts_[word]++; }

    // The mistake: a copy and a full sort, where std::partial_sort of pointers would do, or a running top ten.
    std::vector<std::pair<std::string, int>> top(size_t n) const {
        std::vector<std::pair<std::string, int>> all(counts_.begin(), counts_.end());
        std::sort(all.begin(), all.end(), [](const auto &a, const auto &b) {
            return a.second != b.second ? a.second > b.second : a.first < b.first;
        });
        all.resize(std::min(n, all.size()));
        return all;
    }

private:
    std::unordered_map<std::string, int> counts_;
};

int main() {
    text::Source source(88172645463325252ull);
    Counter counter;
    std::string best;
    for (int paragraph = 0; paragraph < 1500; paragraph++) {
        for (const std::string &word : text::split(source.paragraph(200))) counter.add(word);
        best = counter.top(10).front().first;
    }
    std::printf("most frequent: %s\n", best.c_str());
}
