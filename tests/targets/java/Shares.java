import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.lang.management.ManagementFactory;
import java.lang.management.ThreadMXBean;
import java.util.Random;

/**
 * Spends about 70 % of its CPU time in heavy() and 30 % in light(), and counts it: "counters" is
 * answered with the CPU time of both in nanoseconds. "more" has it run code that was not there before.
 */
public class Shares {
    static final ThreadMXBean THREADS = ManagementFactory.getThreadMXBean();
    static volatile long heavyNs, lightNs, sink;
    static volatile boolean more;
    static final Random RANDOM = new Random(1);
    static final double[] HEAVY_BEST = {Double.MAX_VALUE}, LIGHT_BEST = {Double.MAX_VALUE};

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

    /** What takes many times as long was not run meanwhile: then a virtual machine's clock runs on. */
    static long spent(long ns, long n, double[] best) {
        best[0] = Math.min(best[0], (double) ns / n);
        return Math.min(ns, (long) (4 * best[0] * n));
    }

    static void round() {
        /* Of no fixed length: nothing to fall into step with. */
        long n = 20000 + RANDOM.nextInt(40000);
        long a = THREADS.getCurrentThreadCpuTime();
        sink = heavy(7 * n);
        long b = THREADS.getCurrentThreadCpuTime();
        sink = light(3 * n);
        long c = THREADS.getCurrentThreadCpuTime();
        heavyNs += spent(b - a, 7 * n, HEAVY_BEST);
        lightNs += spent(c - b, 3 * n, LIGHT_BEST);
        if (more)
            sink = later(10 * n);
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
        while (heavyNs + lightNs < 1000000000L)
            Thread.sleep(20);
        System.out.println("ready 0");
        while ((line = in.readLine()) != null) {
            if (line.equals("more"))
                more = true;
            System.out.println(heavyNs + " " + lightNs);
        }
    }
}
