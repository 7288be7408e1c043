// Goes through customers by value, so each with its strings and its orders is copied; the fix goes through them by reference.
#include <cstdio>
#include <map>
#include <string>
#include <vector>

struct Customer {
    std::string name, street, city;
    std::vector<int> orders;
    int discount = 0;
};

static std::vector<Customer> load(int count) {
    std::vector<Customer> all;
    for (int i = 0; i < count; i++) {
        Customer one;
        one.name = "customer number " + std::to_string(i);
        one.street = "a street with a rather long name " + std::to_string(i % 311);
        one.city = "city" + std::to_string(i % 20);
        one.discount = i % 7;
        for (int k = 0; k < 10 + i % 9; k++)
            one.orders.push_back(i * k % 450);
        all.push_back(one);
    }
    return all;
}

__attribute__((noinline)) static long revenue(const std::vector<Customer> &all, int limit) {
    long sum = 0;
#ifdef AFTER
    for (const auto &customer : all) {
#else
    for (auto customer : all) { // SLOW
#endif
        for (int order : customer.orders)
            if (order > limit)
                sum += order * (100 - customer.discount);
    }
    return sum;
}

int main() {
    auto all = load(5000);
    long sum = 0;
    for (int limit = 0; limit < 3500; limit++)
        sum += revenue(all, limit % 450);
    std::fprintf(stderr, "%ld\n", sum);
}
