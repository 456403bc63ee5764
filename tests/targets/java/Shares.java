import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.lang.management.ManagementFactory;
import java.lang.management.ThreadMXBean;

/**
 * Spends about 70 % of its CPU time in heavy() and 30 % in light(), and counts it: "counters" is
 * answered with the CPU time of both in nanoseconds. "more" has it run code that was not there before.
 */
public class Shares {
    static final ThreadMXBean THREADS = ManagementFactory.getThreadMXBean();
    static volatile long heavyNs, lightNs, sink;
    static volatile boolean more;

    static long heavy(long n) {
        long x = sink;
        for (long i = 0; i < n; i++)
            x = x * 31 + (x >>> 7) + i;
        return x;
    }

    static long light(long n) {
        long x = sink;
        for (long i = 0; i < n; i++)
            x = x * 37 + (x >>> 9) + i;
        return x;
    }

    static long later(long n) {
        long x = sink;
        for (long i = 0; i < n; i++)
            x = x * 41 + (x >>> 11) + i;
        return x;
    }

    static void round() {
        long a = THREADS.getCurrentThreadCpuTime();
        sink = heavy(1400000);
        long b = THREADS.getCurrentThreadCpuTime();
        sink = light(600000);
        long c = THREADS.getCurrentThreadCpuTime();
        heavyNs += b - a;
        lightNs += c - b;
        if (more)
            sink = later(2000000);
    }

    static void work() {
        while (true)
            round();
    }

    public static void main(String[] args) throws Exception {
        Thread worker = new Thread(Shares::work, "worker");
        BufferedReader in = new BufferedReader(new InputStreamReader(System.in));
        String line;

        worker.setDaemon(true);
        worker.start();
        /* Until both are compiled for good. */
        while (heavyNs + lightNs < 2000000000L)
            Thread.sleep(20);
        System.out.println("ready 0");
        while ((line = in.readLine()) != null) {
            if (line.equals("more"))
                more = true;
            System.out.println(heavyNs + " " + lightNs);
        }
    }
}
