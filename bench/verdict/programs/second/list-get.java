// Goes through a linked list by number, from its start each time; the fix uses an ArrayList.
import java.util.ArrayList;
import java.util.LinkedList;
import java.util.List;

public class App {
    static long sum(List<Integer> numbers) {
        long total = 0;
        for (int i = 0; i < numbers.size(); i++) total += numbers.get(i); // SLOW
        return total;
    }

    public static void main(String[] args) {
        List<Integer> numbers = args[0].equals("after") ? new ArrayList<>() : new LinkedList<>();
        for (int i = 0; i < 60000; i++) numbers.add(i);
        System.err.println(sum(numbers));
    }
}
