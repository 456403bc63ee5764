import java.lang.reflect.Proxy;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.atomic.AtomicLong;
import java.util.concurrent.locks.ReentrantLock;
import jdk.jfr.Event;
import jdk.jfr.Name;

/**
 * Work of every kind that a recording shows: threads that allocate, that wait for a monitor and for
 * a lock, that compute; and an event of its own with a field of every type. Runs for so many
 * milliseconds, then prints what it counted itself.
 */
public final class Work {
	@Name("work.Fields")
	static final class Fields extends Event {
		boolean flag;
		byte small;
		char letter;
		short brief;
		int whole;
		long wide;
		float single;
		double real;
		String text;
		Class<?> kind;
		Thread other;
	}

	static final class Table {
	}

	static final Table table = new Table();
	static final ReentrantLock lock = new ReentrantLock();
	static final AtomicLong waitedNs = new AtomicLong();
	static volatile Object sink;
	static volatile boolean stop;

	static void allocateArrays() {
		for (int i = 0; !stop; i++) {
			sink = new byte[1 + i % 200_000];
			sink = new Object[100];
			sink = String.valueOf(i);
			if (i % 32 == 0)
				pause(1);
		}
	}

	static void holdMonitor() {
		while (!stop) {
			synchronized (table) {
				pause(3);
			}
			pause(1);
		}
	}

	static void waitForMonitor() {
		while (!stop) {
			long from = System.nanoTime();
			synchronized (table) {
				waitedNs.addAndGet(System.nanoTime() - from);
			}
			pause(1);
		}
	}

	static void waitForLock() {
		while (!stop) {
			lock.lock();
			try {
				pause(3);
			} finally {
				lock.unlock();
			}
		}
	}

	static double compute() {
		double x = 1;
		while (!stop)
			for (int i = 0; i < 1000; i++)
				x = Math.sin(x) + Math.sqrt(x + i);
		return x;
	}

	/** Generated classes: a lambda and a proxy, each on the stack of an allocation. */
	static void generate() {
		List<Runnable> made = new ArrayList<>();

		made.add(() -> sink = new long[20_000]);
		made.add((Runnable)Proxy.newProxyInstance(
			Work.class.getClassLoader(), new Class<?>[] {Runnable.class}, (p, m, a) -> {
				sink = new int[30_000];
				return null;
			}));
		while (!stop) {
			made.forEach(Runnable::run);
			pause(1);
		}
	}

	static void tell() {
		String[] texts = {null, "", "plain", "größer", "漢字 \ud83d\ude00", "with \"quotes\"\n",
				  "a text that is long enough to go into the pool of strings"};

		for (int i = 0; !stop; i++) {
			Fields e = new Fields();

			e.flag = i % 3 == 0;
			e.small = (byte)(i * 7);
			e.letter = (char)('A' + i % 26);
			e.brief = (short)(i * -31);
			e.whole = i % 2 == 0 ? -i * 12345 : Integer.MAX_VALUE - i;
			e.wide = i % 5 == 0 ? Long.MIN_VALUE + i : i * 1_000_000_007L;
			e.single = i / 3f;
			e.real = -i / 7.0;
			e.text = texts[i % texts.length];
			e.kind = i % 2 == 0 ? Table.class : int[][].class;
			e.other = Thread.currentThread();
			e.commit();
			pause(5);
		}
	}

	static void pause(long ms) {
		try {
			Thread.sleep(ms);
		} catch (InterruptedException e) {
			throw new IllegalStateException(e);
		}
	}

	public static void main(String[] args) throws Exception {
		Runnable[] jobs = {Work::allocateArrays, Work::holdMonitor, Work::waitForMonitor,
				   Work::waitForMonitor, Work::waitForLock, Work::waitForLock,
				   Work::compute, Work::generate, Work::tell};
		List<Thread> threads = new ArrayList<>();

		for (int i = 0; i < jobs.length; i++)
			threads.add(new Thread(jobs[i], "work-" + i));
		threads.forEach(Thread::start);
		Thread.sleep(Long.parseLong(args[0]));
		stop = true;
		for (Thread thread : threads)
			thread.join();
		System.out.println("waited_ns " + waitedNs.get());
	}
}
