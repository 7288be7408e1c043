/** The edit distance of pairs of words by two rows: well made, nothing to mend. */
public class App {
    static int distance(byte[] a, byte[] b, int[] above, int[] row) {
        for (int j = 0; j <= b.length; j++) above[j] = j;
        for (int i = 1; i <= a.length; i++) {
            row[0] = i;
            for (int j = 1; j <= b.length; j++) {
                int change = above[j - 1] + (a[i - 1] == b[j - 1] ? 0 : 1);
                row[j] = Math.min(change, Math.min(above[j], row[j - 1]) + 1);
            }
            int[] swap = above;
            above = row;
            row = swap;
        }
        return above[b.length];
    }

    public static void main(String[] args) {
        byte[][] words = new byte[600][];
        int state = 3;
        for (int i = 0; i < words.length; i++) {
            words[i] = new byte[30 + i % 20];
            for (int j = 0; j < words[i].length; j++) {
                state = state * 1664525 + 1013904223;
                words[i][j] = (byte) ('a' + (state >>> 28));
            }
        }
        int[] above = new int[64], row = new int[64];
        long sum = 0;
        for (byte[] a : words) for (byte[] b : words) sum += distance(a, b, above, row);
        System.err.println(sum);
    }
}
