// Counts by long names in a std::map, which compares them at each level; the fix counts in a hash table.
#include <iostream>
#include <map>
#include <string>
#include <unordered_map>
#include <vector>

#ifdef AFTER
using Counts = std::unordered_map<std::string, int>;
#else
using Counts = std::map<std::string, int>;
#endif

__attribute__((noipa)) static void count_names(Counts &counts, const std::vector<std::string> &names)
{
	for (const auto &name : names)
		counts[name]++; // SLOW
}

int main()
{
	std::vector<std::string> names;
	unsigned seed = 1;
	for (int i = 0; i < 4000; i++) {
		seed = seed * 1664525 + 1013904223;
		names.push_back("com.example.service.orders." + std::to_string((seed >> 10) % 2000));
	}
	Counts counts;
	for (int round = 0; round < 3500; round++)
		count_names(counts, names);
	std::cerr << counts.size() << '\n';
}
