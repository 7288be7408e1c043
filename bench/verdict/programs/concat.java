// Appends to a String, which copies it each time; the fix is a StringBuilder.
public class App {
    static String report(int lines, boolean after) {
        if (after) {
            StringBuilder text = new StringBuilder();
            for (int i = 0; i < lines; i++) text.append("line ").append(i).append('\n');
            return text.toString();
        }
        String text = "";
        for (int i = 0; i < lines; i++) text += "line " + i + "\n"; // SLOW
        return text;
    }

    public static void main(String[] arguments) {
        int size = 0;
        for (int round = 0; round < 6; round++) size += report(14000, arguments[0].equals("after")).length();
        System.err.println(size);
    }
}
