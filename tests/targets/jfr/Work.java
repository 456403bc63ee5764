import java.lang.reflect.Proxy;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.atomic.AtomicIntegerArray;
import java.util.concurrent.locks.ReentrantLock;
import jdk.jfr.Event;
import jdk.jfr.Name;
import jdk.jfr.Recording;

/**
 * Work of every kind that a recording shows: threads that allocate, that wait for a monitor and for
 * a lock, that compute; and an event of its own with a field of every type. Runs until each of them
 * has done so many rounds of its work. A second number says how often it has its recording begin a
 * new file meanwhile.
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
	static final long LONG_NS = 1_000_000;
	static AtomicIntegerArray rounds;
	static int enough;
	static final ThreadLocal<Integer> job = new ThreadLocal<>();
	static volatile Object sink;
	static volatile boolean stop;

	/** One that has done enough leaves the CPU to the others. */
	static void count() {
		pause(rounds.incrementAndGet(job.get()) < enough ? 1 : 20);
	}

	static void allocateArrays() {
		for (int i = 0; !stop; i++) {
			/* Much more than a JVM allocates before it records. */
			sink = new byte[1 + i * 389 % 800_000];
			sink = new Object[100];
			sink = String.valueOf(i);
			if (i % 32 == 0)
				count();
		}
	}

	static void holdMonitor() {
		while (!stop) {
			synchronized (table) {
				pause(3);
			}
			count();
		}
	}

	static void waitForMonitor() {
		while (!stop) {
			long from = System.nanoTime();
			synchronized (table) {
				from = System.nanoTime() - from;
			}
			if (from > LONG_NS)
				count();
			else
				pause(1);
		}
	}

	static void waitForLock() {
		while (!stop) {
			long from = System.nanoTime();
			lock.lock();
			try {
				from = System.nanoTime() - from;
				pause(3);
			} finally {
				lock.unlock();
			}
			if (from > LONG_NS)
				count();
		}
	}

	static double compute() {
		double x = 1;
		while (!stop) {
			for (int i = 0; i < 20_000; i++)
				x = Math.sin(x) + Math.sqrt(x + i);
			count();
		}
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
			count();
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
			count();
		}
	}

	static void pause(long ms) {
		try {
			Thread.sleep(ms);
		} catch (InterruptedException e) {
			throw new IllegalStateException(e);
		}
	}

	static boolean haveAllDone() {
		for (int i = 0; i < rounds.length(); i++)
			if (rounds.get(i) < enough)
				return false;
		return true;
	}

	/** With a recording that starts, and one that stops, the others begin a new file. */
	static void rotate() {
		Recording recording = new Recording();

		recording.start();
		recording.close();
	}

	public static void main(String[] args) throws Exception {
		Runnable[] jobs = {Work::allocateArrays, Work::holdMonitor, Work::waitForMonitor,
				   Work::waitForMonitor, Work::waitForLock, Work::waitForLock,
				   Work::compute, Work::generate, Work::tell};
		List<Thread> threads = new ArrayList<>();

		enough = Integer.parseInt(args[0]);
		rounds = new AtomicIntegerArray(jobs.length);
		for (int i = 0; i < jobs.length; i++) {
			int number = i;

			threads.add(new Thread(() -> {
				job.set(number);
				jobs[number].run();
			}, "work-" + i));
		}
		threads.forEach(Thread::start);
		for (int i = 0; args.length > 1 && i < Integer.parseInt(args[1]); i++) {
			while (rounds.get(jobs.length - 1) < i * 10 + 10)
				Thread.sleep(5);
			rotate();
		}
		while (!haveAllDone())
			Thread.sleep(5);
		stop = true;
		for (Thread thread : threads)
			thread.join();
	}
}
