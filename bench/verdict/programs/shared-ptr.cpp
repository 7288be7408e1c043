// Passes a shared_ptr by value, so that each call counts up and down; the fix passes a reference.
#include <iostream>
#include <memory>
#include <thread>

struct Config {
	int factor = 3;
};

#ifdef AFTER
using Handle = const std::shared_ptr<Config> &;
#else
using Handle = std::shared_ptr<Config>;
#endif

__attribute__((noipa)) static long price(Handle config, long item) // SLOW
{
	return item * config->factor;
}

__attribute__((noipa)) static long price_all(const std::shared_ptr<Config> &config, long items)
{
	long sum = 0;
	for (long item = 0; item < items; item++)
		sum += price(config, item); // SLOW
	return sum;
}

int main()
{
	auto config = std::make_shared<Config>();
	std::thread([] {}).join();
	std::cerr << price_all(config, 90000000) << '\n';
}
