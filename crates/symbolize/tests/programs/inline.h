#pragma once
template <typename T> inline T add(T a, T b) { return a + b; }
inline double squared(double x) { return x * x; }
static inline int rotated(int x) { return static_cast<int>((static_cast<unsigned>(x) << 7) | (static_cast<unsigned>(x) >> 25)); }
static inline int mixed(int a, int b) {
    int c = rotated(add(a, b));
    if (c % 3 == 0) c ^= rotated(a);
    return c + b;
}
int other_file(int n);
