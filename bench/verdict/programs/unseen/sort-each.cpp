// Sorts all scores after each new one to know the median; the fix inserts where it belongs.
#include <algorithm>
#include <iostream>
#include <vector>

__attribute__((noipa)) static long median_after(std::vector<int> &scores, int score)
{
#ifdef AFTER
	scores.insert(std::upper_bound(scores.begin(), scores.end(), score), score);
#else
	scores.push_back(score);
	std::sort(scores.begin(), scores.end()); // SLOW
#endif
	return scores[scores.size() / 2];
}

int main()
{
	std::vector<int> scores;
	unsigned seed = 1;
	long sum = 0;
	for (int i = 0; i < 7000; i++) {
		seed = seed * 1664525 + 1013904223;
		sum += median_after(scores, seed >> 12);
	}
	std::cerr << sum << '\n';
}
