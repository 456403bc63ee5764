import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.util.concurrent.locks.ReentrantLock;

/**
 * A JVM that does what it is told, line by line, and says so: "alloc N" allocates N arrays of 64
 * KB, "monitor" and "park" have a thread wait 5 ms for a lock, "gc" collects.
 * It runs until its input ends, and does nothing in between.
 */
public final class Target {
	static volatile Object kept;
	static final Object monitor = new Object();
	static final ReentrantLock lock = new ReentrantLock();

	static void allocate(int n) {
		for (int i = 0; i < n; i++)
			kept = new byte[64 << 10];
	}

	static void waitForMonitor() throws InterruptedException {
		Thread waiter;

		synchronized (monitor) {
			waiter = new Thread(() -> {
				synchronized (monitor) {
					kept = null;
				}
			}, "waiter");
			waiter.start();
			while (waiter.getState() != Thread.State.BLOCKED)
				Thread.sleep(1);
			Thread.sleep(5);
		}
		waiter.join();
	}

	static void waitForLock() throws InterruptedException {
		Thread waiter = new Thread(() -> {
			lock.lock();
			lock.unlock();
		}, "waiter");

		lock.lock();
		waiter.start();
		while (waiter.getState() != Thread.State.WAITING)
			Thread.sleep(1);
		Thread.sleep(5);
		lock.unlock();
		waiter.join();
	}

	public static void main(String[] args) throws Exception {
		BufferedReader in = new BufferedReader(new InputStreamReader(System.in));
		String line;

		System.out.println("ready 0");
		while ((line = in.readLine()) != null) {
			String[] words = line.split(" ");

			switch (words[0]) {
			case "alloc":
				allocate(Integer.parseInt(words[1]));
				break;
			case "monitor":
				waitForMonitor();
				break;
			case "park":
				waitForLock();
				break;
			case "gc":
				System.gc();
				break;
			default:
				break;
			}
			System.out.println("done " + line);
		}
	}
}
