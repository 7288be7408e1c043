// Uses an exception for each field that is no number; the fix looks at the first character.
public class App {
    static int amountOf(String field, boolean after) {
        if (after && !Character.isDigit(field.charAt(0))) return -1;
        try {
            return Integer.parseInt(field); // SLOW
        } catch (NumberFormatException error) {
            return -1;
        }
    }

    public static void main(String[] arguments) {
        boolean after = arguments[0].equals("after");
        long sum = 0;
        for (int i = 0; i < 4000000; i++) sum += amountOf(i % 2 == 0 ? "n/a" + i % 10 : "17", after);
        System.err.println(sum);
    }
}
