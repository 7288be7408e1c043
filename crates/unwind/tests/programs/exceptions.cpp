// Exceptions through several frames, with destructors on the way, rethrown, and caught by base class.
#include <map>
#include <stdexcept>
#include <string>
#include <vector>
volatile long sum;

struct Guard {
    std::string name;
    explicit Guard(int depth) : name(std::to_string(depth) + " is long enough for the heap") {}
    ~Guard() { sum += name.size(); }
};

__attribute__((noinline)) long deeper(int depth) {
    Guard guard(depth);
    if (depth == 0) throw std::runtime_error("bottom");
    try {
        return deeper(depth - 1) + guard.name.size();
    } catch (const std::logic_error &) {
        return 1;
    } catch (...) {
        if (depth == 3) throw std::out_of_range("other");
        throw;
    }
}

int main() {
    std::map<int, std::string> caught;
    for (int i = 0; i < 5; i++) {
        try {
            sum += deeper(i);
        } catch (const std::exception &e) {
            caught[i] = e.what();
        }
    }
    std::vector<int> v;
    try {
        v.at(3) = 1;
    } catch (const std::out_of_range &) {
        sum++;
    }
    return caught.empty();
}
