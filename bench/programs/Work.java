// Trees, strings, sorting and maps on two threads, for so many seconds.
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Random;
import java.util.TreeMap;

public class Work {
    static long round(Random random) {
        Map<String, List<Integer>> map = new HashMap<>();
        for (int i = 0; i < 20000; i++) {
            map.computeIfAbsent("word" + random.nextInt(997), key -> new ArrayList<>()).add(i);
        }
        TreeMap<String, Integer> tree = new TreeMap<>();
        map.forEach((word, places) -> tree.merge(word.substring(0, 5), places.stream().mapToInt(Integer::intValue).sum(), Integer::sum));
        List<String> words = new ArrayList<>(map.keySet());
        words.sort((a, b) -> new StringBuilder(a).reverse().toString().compareTo(b));
        return tree.size() + words.hashCode();
    }

    public static void main(String[] args) throws InterruptedException {
        long until = System.nanoTime() + 1_000_000_000L * Integer.parseInt(args[0]);
        long[] sums = new long[2];
        List<Thread> threads = new ArrayList<>();
        for (int i = 0; i < sums.length; i++) {
            int index = i;
            Thread thread = new Thread(() -> {
                Random random = new Random(index);
                while (System.nanoTime() < until) {
                    sums[index] += round(random);
                }
            });
            thread.start();
            threads.add(thread);
        }
        for (Thread thread : threads) {
            thread.join();
        }
        System.out.println(sums[0] + sums[1]);
    }
}
