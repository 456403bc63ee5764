import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.lang.invoke.MethodHandles;
import java.util.Arrays;
import java.util.concurrent.atomic.AtomicLongArray;
import java.util.concurrent.locks.ReentrantLock;

/**
 * A server without a network: requests go through much compiled code, allocate a little, and take a
 * lock. What is compiled is as broad as in a large program: each worker class is a copy of one, as
 * the JVM compiles it for each anew. "ops" is answered by the number of requests so far, and by
 * the 50th, 99th and 99.9th percentile of their latency in microseconds since the last time.
 */
public final class Broad {
	/** One of the copies. */
	interface Step {
		long step(long seed, Object[] out);
	}

	static final int COPIES = 1200;
	static final int STEPS = 120; // of a request
	static final int THREADS = 2;
	/* Latencies by eighths of powers of two. */
	static final AtomicLongArray latencies = new AtomicLongArray(512);
	static final AtomicLongArray done = new AtomicLongArray(THREADS * 16);
	static final ReentrantLock lock = new ReentrantLock();
	static Step[] steps;
	static long shared;

	/* The bytes of this class, under another name of the same length. */
	static Step copy(byte[] original, int n) throws Exception {
		byte[] bytes = original.clone();
		byte[] from = "Copy0000".getBytes(), to = String.format("Copy%04d", n).getBytes();

		for (int i = 0; i + from.length <= bytes.length; i++)
			if (Arrays.equals(bytes, i, i + from.length, from, 0, from.length))
				System.arraycopy(to, 0, bytes, i, to.length);
		return (Step)MethodHandles.lookup().defineClass(bytes).getDeclaredConstructor()
			.newInstance();
	}

	static void note(long ns) {
		int bits = 63 - Long.numberOfLeadingZeros(Math.max(ns, 8));

		latencies.incrementAndGet(bits * 8 + (int)(ns >> (bits - 3) & 7));
	}

	static void work(int thread) {
		Object[] out = new Object[16];
		long seed = thread + 1;

		for (;;) {
			long begin = System.nanoTime();

			for (int i = 0; i < STEPS; i++) {
				seed = seed * 6364136223846793005L + 1442695040888963407L;
				seed += steps[(int)(seed >>> 33) % steps.length].step(seed, out);
			}
			lock.lock();
			try {
				shared += seed;
			} finally {
				lock.unlock();
			}
			note(System.nanoTime() - begin);
			done.incrementAndGet(thread * 16);
		}
	}

	static long percentile(long[] counts, double share) {
		long all = Arrays.stream(counts).sum(), seen = 0;

		for (int i = 0; i < counts.length; i++) {
			seen += counts[i];
			if (seen > all * share)
				return ((8L + i % 8) << (i / 8)) / 8 / 1000;
		}
		return 0;
	}

	static String answer() {
		long[] counts = new long[latencies.length()];
		long ops = 0;

		for (int i = 0; i < counts.length; i++)
			counts[i] = latencies.getAndSet(i, 0);
		for (int i = 0; i < THREADS; i++)
			ops += done.get(i * 16);
		return ops + " " + percentile(counts, .5) + " " + percentile(counts, .99) + " "
			+ percentile(counts, .999);
	}

	public static void main(String[] args) throws Exception {
		BufferedReader in = new BufferedReader(new InputStreamReader(System.in));
		byte[] original =
			Broad.class.getResourceAsStream("Copy0000.class").readAllBytes();
		String line;

		steps = new Step[COPIES];
		for (int i = 0; i < COPIES; i++)
			steps[i] = copy(original, i + 1);
		for (int i = 0; i < THREADS; i++) {
			int number = i;
			Thread worker = new Thread(() -> work(number), "worker-" + i);

			worker.setDaemon(true);
			worker.start();
		}
		System.out.println("ready " + ProcessHandle.current().pid());
		while ((line = in.readLine()) != null)
			System.out.println(line + " " + answer());
	}
}

/** What is copied: it parses, looks up, sums and keeps something. */
final class Copy0000 implements Broad.Step {
	private final java.util.HashMap<Integer, String> names = new java.util.HashMap<>();
	private final long[] sums = new long[64];

	Copy0000() {
		for (int i = 0; i < 32; i++)
			names.put(i, "name " + i);
	}

	private int parse(long seed) {
		int n = 0;

		for (int i = 0; i < 8; i++)
			n = n * 31 + (int)(seed >> (i * 8) & 0xff);
		return n & 31;
	}

	private String look(int key) {
		String name = names.get(key);

		return name == null ? "none" : name;
	}

	private long sum(String name, long seed) {
		long sum = 0;

		for (int i = 0; i < name.length(); i++) {
			sums[i] += name.charAt(i) ^ seed;
			sum += sums[i] >>> (i & 7);
		}
		return sum;
	}

	@Override
	public long step(long seed, Object[] out) {
		String name = look(parse(seed));
		long sum = sum(name, seed);

		if ((seed & 7) == 0)
			out[(int)(seed >>> 60)] = name + sum;
		return sum & 0xff;
	}
}
