/** Likewise. */
public class Split {
    static final int UNIT = 2000000;

    static int sixty(int x) {
        for (int i = 0; i < 6 * UNIT; i++) x = x * 1664525 + 1013904223;
        return x;
    }

    static int thirty(int x) {
        for (int i = 0; i < 3 * UNIT; i++) x = x * 1664525 + 1013904223;
        return x + 1;
    }

    static int ten(int x) {
        for (int i = 0; i < UNIT; i++) x = x * 1664525 + 1013904223;
        return x + 2;
    }

    public static void main(String[] words) {
        long end = System.nanoTime() + Integer.parseInt(words[0]) * 1_000_000_000L;
        int x = 1;
        while (System.nanoTime() < end) x = ten(thirty(sixty(x)));
        if (x == 7) System.out.println(x);
    }
}
