import java.lang.management.ManagementFactory;
import java.lang.management.ThreadMXBean;
import java.util.Map;
import java.util.TreeMap;
import java.util.function.IntBinaryOperator;

/** Prints the time that it spent in some of its functions, on the processor and in all, in nanoseconds. */
class Shares {
    static final ThreadMXBean THREADS = ManagementFactory.getThreadMXBean();
    static final Map<String, long[]> SPENT = new TreeMap<>();
    static volatile int sink;

    /** Called by the virtual machine as the class is first used. */
    static class Late {
        static int seed = 5;

        static {
            long end = System.nanoTime() + 300_000_000L;
            while (System.nanoTime() < end) {
                seed = seed * 31 + (seed >>> 7);
            }
        }
    }

    static int alpha(int n) {
        int sum = 1;
        for (int i = 0; i < n * 6; i++) {
            sum = sum * 31 + (i ^ (sum >>> 7));
        }
        return sum;
    }

    static int beta(int n) {
        IntBinaryOperator step = (sum, i) -> sum * 31 + (i ^ (sum >>> 7));
        int sum = 2;
        for (int i = 0; i < n * 3; i++) {
            sum = step.applyAsInt(sum, i);
        }
        return sum;
    }

    static int gamma(int n) {
        int sum = 3;
        try {
            for (int i = 0; i < n; i++) {
                sum = sum * 31 + (i ^ (sum >>> 7));
            }
            throw new IllegalStateException("thrown");
        } catch (IllegalStateException e) {
            return sum + e.getMessage().length();
        }
    }

    static void spent(String name, long processor, long elapsed) {
        long[] sums = SPENT.computeIfAbsent(name, any -> new long[2]);
        sums[0] += THREADS.getCurrentThreadCpuTime() - processor;
        sums[1] += System.nanoTime() - elapsed;
    }

    static void round(int n) {
        long processor = THREADS.getCurrentThreadCpuTime(), elapsed = System.nanoTime();
        sink += alpha(n);
        spent("Shares.alpha", processor, elapsed);
        processor = THREADS.getCurrentThreadCpuTime();
        elapsed = System.nanoTime();
        sink += beta(n);
        spent("Shares.beta", processor, elapsed);
        processor = THREADS.getCurrentThreadCpuTime();
        elapsed = System.nanoTime();
        sink += gamma(n);
        spent("Shares.gamma", processor, elapsed);
    }

    static void late() {
        long processor = THREADS.getCurrentThreadCpuTime(), elapsed = System.nanoTime();
        sink += Late.seed;
        spent("Shares$Late.<clinit>", processor, elapsed);
    }

    public static void main(String[] arguments) {
        long end = System.nanoTime() + 1_500_000_000L;
        while (System.nanoTime() < end) {
            round(300_000);
        }
        late();
        SPENT.forEach((name, sums) -> System.out.println(name + " " + sums[0] + " " + sums[1]));
    }
}
