// Likewise.
const std = @import("std");
const unit = 2_000_000;
noinline fn spin(x: u32, count: u32) u32 {
    var y = x;
    var i: u32 = 0;
    while (i < count) : (i += 1) {
        y = y *% 1664525 +% 1013904223;
        std.mem.doNotOptimizeAway(y);
    }
    return y;
}
noinline fn sixty(x: u32) u32 { return spin(x, 6 * unit) +% 1; }
noinline fn thirty(x: u32) u32 { return spin(x, 3 * unit) +% 2; }
noinline fn ten(x: u32) u32 { return spin(x, unit) +% 3; }
// By the system call: what the library has of clocks was moved from version to version.
fn seconds() isize {
    var now = [2]isize{ 0, 0 };
    _ = std.os.linux.syscall2(.clock_gettime, 1, @intFromPtr(&now));
    return now[0];
}
pub fn main() void {
    const end = seconds() + 4;
    var x: u32 = 1;
    while (seconds() < end) x = ten(thirty(sixty(x)));
    std.mem.doNotOptimizeAway(x);
}
