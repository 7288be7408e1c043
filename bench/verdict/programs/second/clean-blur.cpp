// Blurs a picture by running sums, row by row: well made, nothing to mend.
#include <cstdio>
#include <vector>

__attribute__((noinline)) static void blur(const std::vector<float> &from, std::vector<float> &to, int width, int height)
{
	for (int y = 0; y < height; y++) {
		const float *in = &from[(size_t)y * width];
		float *out = &to[(size_t)y * width];
		float sum = 0;
		for (int x = 0; x < 9; x++)
			sum += in[x];
		for (int x = 4; x + 5 < width; x++) {
			out[x] = sum * (1.0f / 9);
			sum += in[x + 5] - in[x - 4];
		}
	}
}

int main()
{
	const int width = 512, height = 256;
	std::vector<float> one(width * height, 1.0f), two(width * height);
	for (int i = 0; i < 2500; i++) {
		blur(one, two, width, height);
		one.swap(two);
	}
	std::fprintf(stderr, "%f\n", one[1000]);
}
