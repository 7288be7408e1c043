/** Spins until it is killed. */
class Spins {
    static long sum;

    static long spins(long n) {
        long sum = 0;
        for (long i = 0; i < n; i++) {
            sum += i * i ^ sum >> 3;
        }
        return sum;
    }

    public static void main(String[] arguments) {
        System.out.println("spins");
        while (true) {
            sum += spins(1_000_000);
        }
    }
}
