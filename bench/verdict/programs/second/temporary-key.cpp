// Looks names up in a map of strings by const char *, so that each look-up makes a string; the fix compares as they are.
#include <cstdio>
#include <functional>
#include <map>
#include <string>

#ifdef AFTER
using Prices = std::map<std::string, int, std::less<>>;
#else
using Prices = std::map<std::string, int>;
#endif

__attribute__((noinline)) static int price(const Prices &prices, const char *name)
{
	auto found = prices.find(name); // SLOW
	return found == prices.end() ? 0 : found->second;
}

int main()
{
	Prices prices;
	static char names[40][40];
	for (int i = 0; i < 40; i++) {
		std::snprintf(names[i], sizeof names[i], "%02d-warehouse-article-number", i);
		if (i % 8 == 0)
			prices[names[i]] = i;
	}
	long total = 0;
	for (long i = 0; i < 20000000; i++)
		total += price(prices, names[i % 40]);
	std::fprintf(stderr, "%ld\n", total);
}
