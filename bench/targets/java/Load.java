import java.io.BufferedReader;
import java.io.InputStreamReader;

/**
 * Makes garbage as fast as it can, some 45 KB each operation: strings, lists of small objects, a
 * buffer. One thread works; "ops" is answered by how often it has done so.
 */
public final class Load {
	static final class Item {
		final String name;
		final long[] values = new long[4];
		final Item next;

		Item(String name, Item next) {
			this.name = name;
			this.next = next;
		}
	}

	static volatile long ops;
	static volatile Object kept;

	static Item parse(byte[] buffer) {
		Item list = null;

		for (int i = 0; i < 256; i++)
			list = new Item("item " + (buffer[i] + i), list);
		return list;
	}

	static byte[] receive(int n) {
		byte[] buffer = new byte[16 << 10];

		for (int i = 0; i < 256; i++)
			buffer[i] = (byte)(n >> (i & 15));
		return buffer;
	}

	static void work() {
		for (int n = 0;; n++) {
			kept = parse(receive(n));
			ops++;
		}
	}

	public static void main(String[] args) throws Exception {
		BufferedReader in = new BufferedReader(new InputStreamReader(System.in));
		Thread worker = new Thread(Load::work, "worker");
		String line;

		worker.setDaemon(true);
		worker.start();
		System.out.println("ready " + ProcessHandle.current().pid());
		while ((line = in.readLine()) != null)
			System.out.println(line + " " + ops);
	}
}
