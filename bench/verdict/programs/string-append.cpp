// Appends by making a new string of both; the fix appends in place.
#include <iostream>
#include <string>

__attribute__((noipa)) static std::string join(int words)
{
	std::string text;
	for (int i = 0; i < words; i++) {
		std::string word = "word" + std::to_string(i % 1000);
#ifdef AFTER
		text += word + ' ';
#else
		text = text + word + ' '; // SLOW
#endif
	}
	return text;
}

int main()
{
	size_t sum = 0;
	for (int round = 0; round < 20; round++)
		sum += join(16000).size();
	std::cerr << sum << '\n';
}
