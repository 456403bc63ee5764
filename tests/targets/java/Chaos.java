import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.lang.management.ManagementFactory;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.concurrent.atomic.AtomicLong;
import java.util.concurrent.locks.ReentrantLock;

/**
 * The pair that profiles of memory and locks must tell apart: threads that hold a lock for 5 ms
 * each while the others wait for it, by `synchronized` and by ReentrantLock, and one that allocates
 * large arrays; and one that computes. It counts for itself what it does: each line of its input
 * is answered by the time in ns since 1970, the bytes that it and threads that come and go have
 * allocated, and those at their edges (see there), for both kinds of lock how often and how long
 * was waited, and the CPU time of the one that computes.
 *
 * Its threads have all worked before it says that it is ready. "pause" is answered when each has
 * ended what it does and stands still, "go" when they work again, "hurry" is "go" with hardly a
 * rest for those that allocate and compute: between "go" and "pause" lies all that it counts.
 */
public final class Chaos {
	static final int WAITERS = 3;
	static final long HELD_MS = 5;

	static volatile Object kept;
	static final Object monitor = new Object();
	static final ReentrantLock lock = new ReentrantLock();
	static volatile long computeNs;
	static final AtomicLong large = new AtomicLong(), largeEdge = new AtomicLong(),
				young = new AtomicLong(), youngEdge = new AtomicLong();

	static volatile boolean paused, hurried;
	static final AtomicInteger standing = new AtomicInteger();
	static final int WORKERS = 2 * WAITERS + 2;
	static final CountDownLatch worked = new CountDownLatch(WORKERS);

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

	interface Allocation {
		void of(int n, int size, AtomicLong counter);
	}

	static void allocateLarge(int n, int size, AtomicLong counter) {
		for (int i = 0; i < n; i++) {
			kept = new byte[size];
			counter.addAndGet(size + 16);
		}
	}

	static void allocateYoung(int n, int size, AtomicLong counter) {
		for (int i = 0; i < n; i++) {
			kept = new byte[size];
			counter.addAndGet(size + 16);
		}
	}

	/**
	 * As many arrays per time, each much smaller. A recorder that picks some 30 arrays in each
	 * fifth of a second picks one of these, and with it counts all before: what it can miss at
	 * either end is among them.
	 */
	static void edge(Allocation allocation, AtomicLong counter) throws InterruptedException {
		for (int i = 0; i < 32; i++) {
			allocation.of(256, 2 << 10, counter);
			Thread.sleep(16);
		}
	}

	/** A fifth of all at most, however busy the machine is. */
	static void liveYoung() {
		try {
			for (long next = 0; !paused; Thread.sleep(1)) {
				if (large.get() < next)
					continue;
				next = large.get() + (4 << 20);
				allocateYoung(16, 64 << 10, young);
			}
			edge(Chaos::allocateYoung, youngEdge);
		} catch (InterruptedException e) {
			return;
		}
	}

	/**
	 * Some of what is allocated is by a thread that did not exist when the recording began. At
	 * the edges of one thread nobody else allocates: the recorder would pick the arrays of others.
	 */
	static void allocate() throws InterruptedException {
		Thread thread = new Thread(Chaos::liveYoung, "young-" + System.nanoTime());

		edge(Chaos::allocateLarge, largeEdge);
		thread.start();
		do {
			allocateLarge(16, 256 << 10, large);
			worked.countDown();
			Thread.sleep(hurried ? 1 : 20);
		} while (!paused);
		thread.join();
		edge(Chaos::allocateLarge, largeEdge);
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
		if (!hurried)
			Thread.sleep(80);
	}

	interface Work {
		void once() throws InterruptedException;
	}

	static void stand() throws InterruptedException {
		standing.incrementAndGet();
		while (paused)
			Thread.sleep(2);
		standing.decrementAndGet();
	}

	static void start(String name, Work work) {
		Thread t = new Thread(() -> {
			try {
				for (;;) {
					work.once();
					worked.countDown();
					if (paused)
						stand();
				}
			} catch (InterruptedException e) {
				return;
			}
		}, name);

		t.setDaemon(true);
		t.start();
	}

	/** Until so many stand still: all, or none. */
	static void await(int n) throws InterruptedException {
		while (standing.get() != n)
			Thread.sleep(1);
	}

	static void obey(String command) throws InterruptedException {
		if (command.equals("pause")) {
			paused = true;
			await(WORKERS);
			hurried = false;
		} else if (command.equals("go") || command.equals("hurry")) {
			hurried = command.equals("hurry");
			paused = false;
			await(0);
		}
	}

	static String counters() {
		java.time.Instant now = java.time.Instant.now();

		return now.getEpochSecond() * 1_000_000_000L + now.getNano() + " " + large.get() + " " +
			largeEdge.get() + " " + young.get() + " " + youngEdge.get() + " " +
			monitorWaits.text() + " " + lockWaits.text() + " " + computeNs;
	}

	public static void main(String[] args) throws Exception {
		BufferedReader in = new BufferedReader(new InputStreamReader(System.in));
		String line;

		for (int i = 0; i < WAITERS; i++) {
			start("monitor-" + i, Chaos::holdMonitor);
			start("lock-" + i, Chaos::holdLock);
		}
		start("large", Chaos::allocate);
		start("compute", Chaos::compute);
		worked.await();
		System.out.println("ready 0");
		while ((line = in.readLine()) != null) {
			obey(line);
			System.out.println(counters());
		}
	}
}
