// Compiles its expression for each line; the fix keeps it.
#include <cstdio>
#include <regex>
#include <string>

__attribute__((noinline)) static bool is_error(const std::string &line)
{
#ifdef AFTER
	static const std::regex pattern("^(ERROR|FATAL) [a-z]+[0-9]{1,4}");
#else
	const std::regex pattern("^(ERROR|FATAL) [a-z]+[0-9]{1,4}"); // SLOW
#endif
	return std::regex_search(line, pattern);
}

int main()
{
	long count = 0;
	for (int i = 0; i < 30000; i++)
		count += is_error((i % 7 ? "INFO unit" : "ERROR unit") + std::to_string(i % 5000));
	std::fprintf(stderr, "%ld\n", count);
}
