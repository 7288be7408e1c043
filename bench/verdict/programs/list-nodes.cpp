// Allocates a node for each point of each frame; the fix reuses one vector.
#include <iostream>
#include <list>
#include <vector>

__attribute__((noipa)) static long fill_frame(int frame)
{
#ifdef AFTER
	static std::vector<int> points;
	points.clear();
#else
	std::list<int> points;
#endif
	for (int i = 0; i < 1000; i++)
		points.push_back(i ^ frame); // SLOW
	long sum = 0;
	for (int point : points)
		sum += point;
	return sum;
}

int main()
{
	long sum = 0;
	for (int frame = 0; frame < 60000; frame++)
		sum += fill_frame(frame);
	std::cerr << sum << '\n';
}
