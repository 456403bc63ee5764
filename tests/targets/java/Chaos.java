import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.lang.management.ManagementFactory;
import java.util.concurrent.atomic.LongAdder;
import java.util.concurrent.locks.ReentrantLock;

/**
 * The pair that profiles of memory and locks must tell apart: threads that hold a lock for 5 ms
 * each while the others wait for it, by `synchronized` and by ReentrantLock, and one that allocates
 * large arrays; and one that computes. It counts for itself what it does: each line of its input
 * is answered by the time in ns since 1970, the bytes allocated, for both kinds of lock how often
 * and how long was waited, and the CPU time of the one that computes. Its threads start before it
 * says that it is ready, new ones come and go as well.
 */
public final class Chaos {
	static final int WAITERS = 3;
	static final long HELD_MS = 5;

	static volatile Object kept;
	static final Object monitor = new Object();
	static final ReentrantLock lock = new ReentrantLock();
	static volatile long computeNs;
	static final LongAdder bytes = new LongAdder();

	/** Waits that are over; they count when they end, as a recording has them. */
	static final class Waits {
		long count, ns;

		synchronized void add(long waited) {
			/* What the recording is told to leave out. */
			if (waited < 1_000_000)
				return;
			count++;
			ns += waited;
		}

		synchronized String text() {
			return count + " " + ns;
		}
	}

	static final Waits monitorWaits = new Waits(), lockWaits = new Waits();

	static void holdMonitor() throws InterruptedException {
		long begin = System.nanoTime();

		synchronized (monitor) {
			monitorWaits.add(System.nanoTime() - begin);
			Thread.sleep(HELD_MS);
		}
		/* Who has just had it would get it again, and again. */
		Thread.sleep(1);
	}

	static void holdLock() throws InterruptedException {
		long begin = System.nanoTime();

		lock.lock();
		try {
			lockWaits.add(System.nanoTime() - begin);
			Thread.sleep(HELD_MS);
		} finally {
			lock.unlock();
		}
		Thread.sleep(1);
	}

	static void allocateLarge() throws InterruptedException {
		for (int i = 0; i < 16; i++) {
			kept = new byte[256 << 10];
			bytes.add((256 << 10) + 16);
		}
		Thread.sleep(1);
	}

	/** Some of what is allocated is by threads that did not exist when the recording began. */
	static void allocateBriefly() throws InterruptedException {
		Thread brief = new Thread(() -> {
			for (int i = 0; i < 200; i++) {
				kept = new long[8 << 10];
				bytes.add((64 << 10) + 16);
			}
		}, "brief-" + System.nanoTime());

		brief.start();
		brief.join();
		Thread.sleep(500);
	}

	static void compute() throws InterruptedException {
		long until = System.nanoTime() + 20_000_000;
		double x = 1;

		while (System.nanoTime() < until)
			for (int i = 0; i < 1000; i++)
				x = x * 1.0001 + i;
		if (x == 0)
			kept = null;
		computeNs = ManagementFactory.getThreadMXBean().getCurrentThreadCpuTime();
		Thread.sleep(80);
	}

	interface Work {
		void once() throws InterruptedException;
	}

	static void start(String name, Work work) {
		Thread t = new Thread(() -> {
			try {
				for (;;)
					work.once();
			} catch (InterruptedException e) {
				return;
			}
		}, name);

		t.setDaemon(true);
		t.start();
	}

	static String counters() {
		java.time.Instant now = java.time.Instant.now();

		return now.getEpochSecond() * 1_000_000_000L + now.getNano() + " " + bytes.sum() + " " +
			monitorWaits.text() + " " + lockWaits.text() + " " +
			computeNs;
	}

	public static void main(String[] args) throws Exception {
		BufferedReader in = new BufferedReader(new InputStreamReader(System.in));

		for (int i = 0; i < WAITERS; i++) {
			start("monitor-" + i, Chaos::holdMonitor);
			start("lock-" + i, Chaos::holdLock);
		}
		start("large", Chaos::allocateLarge);
		start("compute", Chaos::compute);
		start("starter", Chaos::allocateBriefly);
		Thread.sleep(500);
		System.out.println("ready 0");
		while (in.readLine() != null)
			System.out.println(counters());
	}
}
