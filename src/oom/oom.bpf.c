/*
 * src/oom/oom.bpf.c: reports at once which process the OOM killer picks.
 *
 * The tracepoint is called while the kernel holds the victim's task lock, after the fatal signal
 * was queued: a fast reader still finds the memory intact.
 *
 * It is attached as a raw tracepoint, by name: the id that an ordinary one needs is in tracefs,
 * which containers and small machines do not mount. Its arguments depend on the kernel:
 *
 *   before 6.8   (int pid)
 *   since        (struct task_struct *task, uid_t uid)
 *
 * Distributions backported that, so check BTF rather than the version.
 */
#include "bpf/program.bpf.h"

#include "oom/oom_shared.h"

char LICENSE[] SEC("license") = "Dual BSD/GPL";

const volatile __u32 page_kb = 4;
/* The inode of our PID namespace; 0 if it is the host's. */
const volatile __u32 own_pid_ns = 0;

BPF_RING(notices, 1 << 16);

__u64 n_lost;

/* The event fields came together with the task argument. */
struct trace_event_raw_mark_victim {
	unsigned long anon_rss;
} KERNEL_TYPE;

struct ns_common {
	unsigned int inum;
} KERNEL_TYPE;

struct pid_namespace {
	struct ns_common ns;
} KERNEL_TYPE;

struct upid {
	int nr;
	struct pid_namespace *ns;
} KERNEL_TYPE;

struct pid {
	unsigned int level;
	struct upid numbers[1];
} KERNEL_TYPE;

struct percpu_counter {
	s64 count;
} KERNEL_TYPE;

enum { COUNTER_FILE, COUNTER_ANON, COUNTER_SWAP, COUNTER_SHMEM, COUNTERS };

/* Since 6.2, */
struct mm_struct {
	struct percpu_counter rss_stat[COUNTERS];
} KERNEL_TYPE;

/* and before. */
struct atomic_long___old {
	long counter;
} KERNEL_TYPE;
struct mm_rss_stat___old {
	struct atomic_long___old count[COUNTERS];
} KERNEL_TYPE;
struct mm_struct___old {
	struct mm_rss_stat___old rss_stat;
} KERNEL_TYPE;

struct task_struct {
	int pid;
	int tgid;
	struct mm_struct *mm;
	struct task_struct *group_leader;
	struct pid *thread_pid;
} KERNEL_TYPE;

#define PID_NS_MAX_LEVEL 32
#define PAGES(mm, i) (BPF_CORE_READ(mm, rss_stat[i].count))
#define PAGES_OLD(mm, i) (BPF_CORE_READ(mm, rss_stat.count[i].counter))

/* Counters of a process with many threads may be slightly negative. */
static __always_inline u64 positive(s64 pages)
{
	return pages > 0 ? (u64)pages : 0;
}

static __always_inline u64 task_rss_kb(struct task_struct *task)
{
	struct mm_struct *mm = BPF_CORE_READ(task, mm);
	struct mm_struct___old *old = (void *)mm;
	u64 pages = 0;

	if (!mm)
		return 0;
	if (bpf_core_field_exists(mm->rss_stat[0].count))
		pages = positive(PAGES(mm, COUNTER_FILE)) + positive(PAGES(mm, COUNTER_ANON)) +
			positive(PAGES(mm, COUNTER_SHMEM));
	else if (bpf_core_field_exists(old->rss_stat.count))
		pages = positive(PAGES_OLD(old, COUNTER_FILE)) +
			positive(PAGES_OLD(old, COUNTER_ANON)) +
			positive(PAGES_OLD(old, COUNTER_SHMEM));
	return pages * page_kb;
}

/* Its pid in our namespace; 0 if outside it. */
static __always_inline u32 task_tgid(struct task_struct *task)
{
	struct pid *pid = BPF_CORE_READ(task, group_leader, thread_pid);
	unsigned int level = BPF_CORE_READ(pid, level);
	const char *numbers = (const char *)__builtin_preserve_access_index(&pid->numbers);

	if (!own_pid_ns)
		return (u32)BPF_CORE_READ(task, tgid);
	for (unsigned int i = 0; i < PID_NS_MAX_LEVEL && i <= level; i++) {
		struct upid *upid = (void *)(numbers + i * bpf_core_type_size(struct upid));

		if (BPF_CORE_READ(upid, ns, ns.inum) == own_pid_ns)
			return (u32)BPF_CORE_READ(upid, nr);
	}
	return 0;
}

/* If only a pid is given: the victim usually is the allocating process. */
static __always_inline struct task_struct *current_if(u32 pid)
{
	u64 current = bpf_get_current_pid_tgid();
	struct task_struct *task = (void *)bpf_get_current_task();

	return pid == (u32)current || pid == current >> 32 ? task : NULL;
}

SEC("raw_tracepoint/mark_victim") int on_victim(struct bpf_raw_tracepoint_args *ctx)
{
	bool has_task = bpf_core_field_exists(((struct trace_event_raw_mark_victim *)0)->anon_rss);
	struct task_struct *task = has_task ? (void *)ctx->args[0] : current_if((u32)ctx->args[0]);
	u32 tgid = own_pid_ns || has_task ? 0 : (u32)ctx->args[0];
	struct oom_notice *n;

	if (task)
		tgid = task_tgid(task);
	if (!tgid)
		return 0;
	n = bpf_ringbuf_reserve(&notices, sizeof(*n), 0);
	if (!n) {
		__sync_fetch_and_add(&n_lost, 1);
		return 0;
	}
	n->mono_ns = bpf_ktime_get_ns();
	n->tgid = tgid;
	n->rss_kb = task ? task_rss_kb(task) : 0;
	n->unused = 0;
	bpf_ringbuf_submit(n, BPF_RB_FORCE_WAKEUP);
	return 0;
}
