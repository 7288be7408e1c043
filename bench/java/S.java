import java.util.*;
import java.util.function.*;
import java.util.stream.*;
import java.util.zip.*;
import java.util.regex.*;
import java.lang.invoke.*;

/** What programs do, in two threads: collections, streams, exceptions, strings, zip, method handles, locks, recursion. S [SECONDS] */
public class S {
    static volatile long sink;

    static int fib(int n) {
        return n < 2 ? n : fib(n - 1) + fib(n - 2);
    }

    static int deep(int n) {
        return n == 0 ? fib(12) : deep(n - 1) + 1;
    }

    static void streams() {
        sink += IntStream.range(0, 2000)
                        .mapToObj(i -> "k" + (i % 97))
                        .collect(Collectors.groupingBy(x -> x, TreeMap::new, Collectors.counting()))
                        .size();
    }

    static void maps() {
        HashMap<String, Integer> m = new HashMap<>();
        for (int i = 0; i < 2000; i++) m.merge(Integer.toHexString(i * 31), 1, Integer::sum);
        sink += m.size();
    }

    static void sort() {
        Integer[] a = new Integer[2000];
        Random r = new Random(7);
        for (int i = 0; i < a.length; i++) a[i] = r.nextInt();
        Arrays.sort(a, (x, y) -> Integer.compare(y, x));
        sink += a[0];
    }

    static final Pattern P = Pattern.compile("(a|b)*c(\\d+)x?");

    static void regex() {
        for (int i = 0; i < 50; i++) sink += P.matcher("abababababac" + i + "x").matches() ? 1 : 0;
    }

    static void zip() throws Exception {
        byte[] b = new byte[20000];
        new Random(1).nextBytes(b);
        Deflater d = new Deflater();
        d.setInput(b);
        d.finish();
        byte[] o = new byte[30000];
        sink += d.deflate(o);
        d.end();
        CRC32 c = new CRC32();
        c.update(b);
        sink += c.getValue();
    }

    static int thrower(int n) {
        if (n == 0) throw new IllegalStateException("x" + n);
        return thrower(n - 1) + 1;
    }

    static void exc() {
        try {
            thrower(20);
        } catch (IllegalStateException e) {
            sink += e.getStackTrace().length;
        }
    }

    static void copy() {
        byte[] a = new byte[100000];
        byte[] b = new byte[100000];
        for (int i = 0; i < 10; i++) System.arraycopy(a, i, b, 10, 90000);
        sink += b[5];
        sink += new StringBuilder().append("abc").append(3.5).append(a.length).toString().hashCode();
    }

    static void fmt() {
        sink += String.format("%d %s %.3f", sink, "x", 1.5).length();
    }

    interface Sh {
        double area();
    }

    record C(double r) implements Sh {
        public double area() {
            return Math.sin(r) * r;
        }
    }

    record Q(double r) implements Sh {
        public double area() {
            return r * r;
        }
    }

    record Tr(double r) implements Sh {
        public double area() {
            return Math.pow(r, 1.3);
        }
    }

    static void mega() {
        Sh[] s = {new C(1), new Q(2), new Tr(3)};
        double t = 0;
        for (int i = 0; i < 5000; i++) t += s[i % 3].area();
        sink += (long) t;
    }

    static MethodHandle MH;

    static int tgt(int a) {
        return a * 3;
    }

    static void mh() throws Throwable {
        int t = 0;
        for (int i = 0; i < 2000; i++) t += (int) MH.invoke(i);
        sink += t;
    }

    static void sync() {
        Object o = new Object();
        Vector<Integer> v = new Vector<>();
        for (int i = 0; i < 1000; i++) synchronized (o) {
                v.add(i);
            }
        sink += v.size();
    }

    static void work(double lim) throws Throwable {
        long s = System.nanoTime();
        while ((System.nanoTime() - s) / 1e9 < lim) {
            deep(200);
            streams();
            maps();
            sort();
            regex();
            zip();
            exc();
            copy();
            fmt();
            mega();
            mh();
            sync();
        }
    }

    public static void main(String[] a) throws Throwable {
        MH = MethodHandles.lookup().findStatic(S.class, "tgt", MethodType.methodType(int.class, int.class));
        double lim = a.length > 0 ? Double.parseDouble(a[0]) : 4;
        Thread t = new Thread(() -> {
            try {
                work(lim);
            } catch (Throwable e) {
                e.printStackTrace();
            }
        });
        t.start();
        work(lim);
        t.join();
    }
}
