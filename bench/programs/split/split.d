// Likewise.
import core.time, std.conv;
enum unit = 2_000_000;
pragma(inline, false) uint sixty(uint x) { foreach (i; 0 .. 6 * unit) x = x * 1664525u + 1013904223u; return x; }
pragma(inline, false) uint thirty(uint x) { foreach (i; 0 .. 3 * unit) x = x * 1664525u + 1013904223u; return x + 1; }
pragma(inline, false) uint ten(uint x) { foreach (i; 0 .. unit) x = x * 1664525u + 1013904223u; return x + 2; }
int main(string[] words)
{
    auto end = MonoTime.currTime + seconds(words.length > 1 ? words[1].to!int : 3);
    uint x = 1;
    while (MonoTime.currTime < end) x = ten(thirty(sixty(x)));
    return x == 7;
}
