import java.util.ArrayDeque;
import java.util.ArrayList;

/** Takes tasks from the front of an ArrayList, which moves all others; the fix uses an ArrayDeque. */
public class App {
    static int[] costs = new int[997];

    static long run(int tasks, boolean after) {
        ArrayList<Integer> list = new ArrayList<>();
        ArrayDeque<Integer> deque = new ArrayDeque<>();
        for (int i = 0; i < 120000; i++) {
            if (after) deque.add(i); else list.add(i);
        }
        long sum = 0;
        for (int i = 0; i < tasks; i++) {
            int task = after ? deque.poll() : list.remove(0); // SLOW
            sum += costs[task % 997];
            if (after) deque.add(task * 3 % 120000 & 0x1ffff); else list.add(task * 3 % 120000 & 0x1ffff);
        }
        return sum;
    }

    public static void main(String[] args) {
        for (int i = 0; i < costs.length; i++) costs[i] = i * i % 101;
        System.err.println(run(150000, args[0].equals("after")));
    }
}
