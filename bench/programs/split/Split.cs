// Likewise.
using System;
using System.Diagnostics;
using System.Runtime.CompilerServices;
static class Split {
    const int Unit = 2000000;
    [MethodImpl(MethodImplOptions.NoInlining)] static uint sixty(uint x) { for (int i = 0; i < 6 * Unit; i++) x = x * 1664525u + 1013904223u; return x; }
    [MethodImpl(MethodImplOptions.NoInlining)] static uint thirty(uint x) { for (int i = 0; i < 3 * Unit; i++) x = x * 1664525u + 1013904223u; return x + 1; }
    [MethodImpl(MethodImplOptions.NoInlining)] static uint ten(uint x) { for (int i = 0; i < Unit; i++) x = x * 1664525u + 1013904223u; return x + 2; }
    static int Main(string[] words) {
        var watch = Stopwatch.StartNew();
        uint x = 1;
        while (watch.Elapsed.TotalSeconds < int.Parse(words[0])) x = ten(thirty(sixty(x)));
        return x == 7 ? 1 : 0;
    }
}
