// Finds out what each shape is by dynamic_cast; the fix asks a virtual function for its kind.
#include <cstdio>
#include <memory>
#include <vector>

struct Shape {
    virtual ~Shape() = default;
    virtual int kind() const = 0;
};
struct Polygon : Shape {};
struct Circle : Shape {
    double radius;
    explicit Circle(double r) : radius(r) {}
    int kind() const override { return 0; }
};
struct Rectangle : Polygon {
    double width, height;
    Rectangle(double w, double h) : width(w), height(h) {}
    int kind() const override { return 1; }
};
struct Triangle : Polygon {
    double base, height;
    Triangle(double b, double h) : base(b), height(h) {}
    int kind() const override { return 2; }
};

#ifdef AFTER
template <typename T> static const T *as(const Shape *shape, int kind) {
    return shape->kind() == kind ? static_cast<const T *>(shape) : nullptr;
}
#else
template <typename T> static const T *as(const Shape *shape, int) {
    return dynamic_cast<const T *>(shape); // SLOW
}
#endif

__attribute__((noinline)) static double area(const Shape *shape) {
    if (auto circle = as<Circle>(shape, 0))
        return 3.14159 * circle->radius * circle->radius;
    if (auto rectangle = as<Rectangle>(shape, 1))
        return rectangle->width * rectangle->height;
    if (auto triangle = as<Triangle>(shape, 2))
        return triangle->base * triangle->height / 2;
    return 0;
}

int main() {
    std::vector<std::unique_ptr<Shape>> shapes;
    for (int i = 0; i < 3000; i++) {
        if (i % 3 == 0)
            shapes.push_back(std::make_unique<Circle>(i % 17));
        else if (i % 3 == 1)
            shapes.push_back(std::make_unique<Rectangle>(i % 11, i % 5));
        else
            shapes.push_back(std::make_unique<Triangle>(i % 13, i % 7));
    }
    double sum = 0;
    for (int round = 0; round < 8000; round++)
        for (const auto &shape : shapes)
            sum += area(shape.get());
    std::fprintf(stderr, "%.1f\n", sum);
}
