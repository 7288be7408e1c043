import java.util.function.IntConsumer;
import java.util.stream.Collectors;
import java.util.stream.IntStream;

/** Prints its own stack as Java knows it, innermost first: function, file and line, and then waits in a function that is called in the same line. */
class Hangs {
    static String frame(StackWalker.StackFrame frame) {
        return frame.getClassName() + "." + frame.getMethodName() + "\t" + frame.getFileName() + "\t" + frame.getLineNumber();
    }

    static boolean says(String text) {
        System.out.println(text);
        return true;
    }

    static String stack() {
        return StackWalker.getInstance().walk(all -> all.skip(1).filter(frame -> frame.getClassName().startsWith("Hangs")).map(Hangs::frame).collect(Collectors.joining("\n")));
    }

    static void sits(long time) throws InterruptedException {
        if (says(stack()) && says("hangs")) Thread.sleep(time);
    }

    /** An inner class. */
    class Waiter implements IntConsumer {
        public void accept(int time) {
            try {
                sits(1000L * time);
            } catch (InterruptedException e) {
                throw new IllegalStateException(e);
            }
        }
    }

    void waits(int... times) {
        IntStream.of(times).forEach(time -> new Waiter().accept(time));
    }

    public static void main(String[] arguments) {
        new Hangs().waits(3600);
    }
}
