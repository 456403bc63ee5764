/** Does next to nothing: a list of numbers every now and then. */
public final class Idle {
	static volatile Object kept;

	public static void main(String[] args) throws Exception {
		System.out.println("ready " + ProcessHandle.current().pid());
		for (;;) {
			kept = new long[1 << 14];
			Thread.sleep(50);
		}
	}
}
