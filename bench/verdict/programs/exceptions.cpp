// Lets std::stoi throw for each field that is no number; the fix asks std::from_chars.
#include <charconv>
#include <iostream>
#include <string>
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

__attribute__((noipa)) static int amount_of(const std::string &field)
{
#ifdef AFTER
	int amount = 0;
	auto [end, error] = std::from_chars(field.data(), field.data() + field.size(), amount);
	return error == std::errc() ? amount : -1;
#else
	try {
		return std::stoi(field); // SLOW
	} catch (const std::invalid_argument &) {
		return -1;
	}
#endif
}

int main()
{
	std::vector<std::string> fields;
	for (int i = 0; i < 1000; i++)
		fields.push_back(i % 2 ? "n/a" : std::to_string(i));
	long sum = 0;
	for (int round = 0; round < 1500; round++)
		for (const auto &field : fields)
			sum += amount_of(field) + (settle(field.size(), 200) & 7);
	std::cerr << sum << '\n';
}
