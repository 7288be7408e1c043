// Takes a vector by value and so copies it in each call; the fix takes a reference.
#include <iostream>
#include <vector>

#ifdef AFTER
using Weights = const std::vector<int> &;
#else
using Weights = std::vector<int>;
#endif

__attribute__((noipa)) static int rank(Weights weights, unsigned item)
{
	return weights[item % weights.size()] + weights[item % 17];
}

__attribute__((noipa)) static long rank_all(const std::vector<int> &weights, unsigned items)
{
	long sum = 0;
	for (unsigned item = 0; item < items; item++)
		sum += rank(weights, item); // SLOW
	return sum;
}

int main()
{
	std::vector<int> weights(3000);
	for (size_t i = 0; i < weights.size(); i++)
		weights[i] = i * 7 % 1001;
	std::cerr << rank_all(weights, 8000000) << '\n';
}
