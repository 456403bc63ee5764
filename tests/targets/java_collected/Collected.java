import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.lang.management.ManagementFactory;
import java.util.concurrent.LinkedBlockingQueue;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicLong;
import java.util.concurrent.locks.ReentrantLock;

/**
 * A JVM that does known work on command and says how much it was:
 * "alloc BYTES" allocates about so many in two methods, "lock N" has three threads take a monitor
 * N times each and hold it for 5 ms, "park N" a lock of java.util.concurrent. It answers with its own
 * counters: bytes allocated, nanoseconds waited. One thread waits for work that never comes, and
 * looks for it each millisecond; "poll N" has N more of these.
 */
public final class Collected {
	static final class Monitor {
	}

	static volatile Object kept;
	static final Monitor monitor = new Monitor();
	static final ReentrantLock lock = new ReentrantLock();
	static final AtomicLong waited = new AtomicLong();
	static final AtomicLong waits = new AtomicLong();

	static void allocateArrays() {
		kept = new byte[100_000];
	}

	static void allocateSmall() {
		for (int i = 0; i < 1000; i++)
			kept = new long[2];
	}

	static long allocated() {
		return ((com.sun.management.ThreadMXBean)ManagementFactory.getThreadMXBean())
			.getThreadAllocatedBytes(Thread.currentThread().getId());
	}

	static void allocate(long bytes) {
		long end = allocated() + bytes;

		do
			for (int i = 0; i < 100; i++) {
				allocateArrays();
				allocateSmall();
			}
		while (allocated() < end);
	}

	static void hold(int n) {
		for (int i = 0; i < n; i++) {
			long begin = System.nanoTime();

			synchronized (monitor) {
				waited.addAndGet(System.nanoTime() - begin);
				waits.incrementAndGet();
				try {
					Thread.sleep(5);
				} catch (InterruptedException e) {
					return;
				}
			}
		}
	}

	static void holdLock(int n) {
		for (int i = 0; i < n; i++) {
			long begin = System.nanoTime();

			lock.lock();
			try {
				waited.addAndGet(System.nanoTime() - begin);
				waits.incrementAndGet();
				Thread.sleep(5);
			} catch (InterruptedException e) {
				return;
			} finally {
				lock.unlock();
			}
		}
	}

	static void idle() {
		LinkedBlockingQueue<Object> work = new LinkedBlockingQueue<>();

		try {
			while (work.poll(1, TimeUnit.MILLISECONDS) == null)
				;
		} catch (InterruptedException e) {
			return;
		}
	}

	static void poll(int n) {
		for (int i = 0; i < n; i++) {
			Thread idle = new Thread(Collected::idle, "idle");

			idle.setDaemon(true);
			idle.start();
		}
	}

	static void lock(Runnable holder) throws InterruptedException {
		Thread[] threads = new Thread[3];

		for (int i = 0; i < threads.length; i++) {
			threads[i] = new Thread(holder, "holder-" + i);
			threads[i].start();
		}
		for (Thread t : threads)
			t.join();
	}

	public static void main(String[] args) throws Exception {
		BufferedReader in = new BufferedReader(new InputStreamReader(System.in));
		String line;

		poll(1);
		allocated();
		System.out.println("ready");
		while ((line = in.readLine()) != null) {
			String[] words = line.split(" ");
			long before = allocated();

			if (words[0].equals("alloc"))
				allocate(Long.parseLong(words[1]));
			else if (words[0].equals("lock"))
				lock(() -> hold(Integer.parseInt(words[1])));
			else if (words[0].equals("poll"))
				poll(Integer.parseInt(words[1]));
			else if (words[0].equals("park"))
				lock(() -> holdLock(Integer.parseInt(words[1])));
			System.out.println(words[0] + " " + (allocated() - before) + " " + waited.get()
					   + " " + waits.get());
		}
	}
}
