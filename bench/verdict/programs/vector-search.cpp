// Asks a vector of names whether a name is in it; the fix asks a hash set.
#include <algorithm>
#include <iostream>
#include <string>
#include <unordered_set>
#include <vector>

// The rest of the work: what a fix leaves.
__attribute__((noipa)) static unsigned long settle(unsigned long value, int steps)
{
	while (steps--) {
		value ^= value << 13;
		value ^= value >> 7;
		value ^= value << 17;
	}
	return value;
}

#ifdef AFTER
using Names = std::unordered_set<std::string>;
#else
using Names = std::vector<std::string>;
#endif

__attribute__((noipa)) static bool is_blocked(const Names &names, const std::string &name)
{
#ifdef AFTER
	return names.count(name) != 0;
#else
	return std::find(names.begin(), names.end(), name) != names.end(); // SLOW
#endif
}

int main()
{
	Names names;
	for (int i = 0; i < 3000; i++)
		names.insert(names.end(), "user" + std::to_string(1000 + i * 3));
	long blocked = 0;
	for (int i = 0; i < 150000; i++)
		blocked += is_blocked(names, "user" + std::to_string(1000 + i % 9000)) && settle(i + 1, 3000) != 0;
	std::cerr << blocked << '\n';
}
