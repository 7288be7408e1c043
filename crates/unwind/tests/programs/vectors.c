/* Frames whose size depends on the length of SVE's vectors: vectors that are needed after a call. */
#include <arm_sve.h>

#define APART __attribute__((noinline))

static double values[64];

APART static double sum(const double *from, long count)
{
    double sum = 0;
    for (long i = 0; i < count; i++)
        sum += from[i];
    return sum;
}

APART svfloat64_t inner(svfloat64_t a, svfloat64_t b)
{
    svbool_t all = svptrue_b64();
    svfloat64_t more = svadd_x(all, a, b), times = svmul_x(all, a, b);
    values[1] += sum(values, 16);
    return svadd_x(all, more, times);
}

APART svfloat64_t outer(svfloat64_t a, long depth)
{
    svbool_t all = svptrue_b64();
    svfloat64_t next = depth ? outer(svadd_x(all, a, 1.0), depth - 1) : inner(a, a);
    return svadd_x(all, next, inner(next, a));
}

int main(void)
{
    svfloat64_t first = svld1(svptrue_b64(), values);
    for (int i = 0; i < 8; i++)
        values[0] += svaddv(svptrue_b64(), outer(first, 3));
    return 0;
}
