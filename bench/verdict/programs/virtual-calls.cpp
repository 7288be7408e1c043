// Calls a virtual function of shapes of three types in random order; the fix keeps each type in a vector of its own.
#include <iostream>
#include <memory>
#include <vector>

struct Shape {
	double size;
	explicit Shape(double size) : size(size) {}
	virtual ~Shape() = default;
	virtual double area() const = 0;
};
struct Square final : Shape {
	using Shape::Shape;
	double area() const override { return size * size; }
};
struct Circle final : Shape {
	using Shape::Shape;
	double area() const override { return size * size * 3.0; }
};
struct Triangle final : Shape {
	using Shape::Shape;
	double area() const override { return size * size * 0.5; }
};

#ifdef AFTER
struct Drawing {
	std::vector<Square> squares;
	std::vector<Circle> circles;
	std::vector<Triangle> triangles;
};

template <class T> static double sum_of(const std::vector<T> &shapes)
{
	double sum = 0;
	for (const auto &shape : shapes)
		sum += shape.area();
	return sum;
}

__attribute__((noipa)) static double total_area(const Drawing &drawing)
{
	return sum_of(drawing.squares) + sum_of(drawing.circles) + sum_of(drawing.triangles);
}
#else
using Drawing = std::vector<std::unique_ptr<Shape>>;

__attribute__((noipa)) static double total_area(const Drawing &drawing)
{
	double sum = 0;
	for (const auto &shape : drawing)
		sum += shape->area(); // SLOW
	return sum;
}
#endif

int main()
{
	Drawing drawing;
	unsigned seed = 1;
	for (int i = 0; i < 12000; i++) {
		seed = seed * 1664525 + 1013904223;
		double size = i % 16;
		switch ((seed >> 16) % 3) {
#ifdef AFTER
		case 0: drawing.squares.emplace_back(size); break;
		case 1: drawing.circles.emplace_back(size); break;
		default: drawing.triangles.emplace_back(size);
#else
		case 0: drawing.push_back(std::make_unique<Square>(size)); break;
		case 1: drawing.push_back(std::make_unique<Circle>(size)); break;
		default: drawing.push_back(std::make_unique<Triangle>(size));
#endif
		}
	}
	double sum = 0;
	for (int round = 0; round < 15000; round++)
		sum += total_area(drawing);
	std::cerr << sum << '\n';
}
