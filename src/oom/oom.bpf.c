/*
 * src/oom/oom.bpf.c: tells at once which process the kernel picks when memory runs out.
 *
 * The tracepoint is called while the kernel holds the victim's task lock, after the fatal signal
 * was queued: whoever is told now, and is fast, finds the memory as it was.
 */
#include <linux/bpf.h>

#include <bpf/bpf_helpers.h>

#include <bpf/bpf_core_read.h>

#include "oom/oom_shared.h"

char LICENSE[] SEC("license") = "Dual BSD/GPL";

struct {
	__uint(type, BPF_MAP_TYPE_RINGBUF);
	__uint(max_entries, 1 << 16);
} notices SEC(".maps");

/* As the kernel names it; which fields there are depends on its version. */
struct trace_event_raw_mark_victim {
	int pid;
	unsigned long anon_rss;
	unsigned long file_rss;
	unsigned long shmem_rss;
} __attribute__((preserve_access_index));

__u64 n_lost;

SEC("tracepoint/oom/mark_victim") int on_victim(struct trace_event_raw_mark_victim *ctx)
{
	struct oom_notice *n = bpf_ringbuf_reserve(&notices, sizeof(*n), 0);
	__u64 current = bpf_get_current_pid_tgid();

	if (!n) {
		__sync_fetch_and_add(&n_lost, 1);
		return 0;
	}
	n->mono_ns = bpf_ktime_get_ns();
	/* A thread that was to end anyway is marked by its own number. */
	n->tgid = (__u32)ctx->pid == (__u32)current ? current >> 32 : (__u32)ctx->pid;
	n->rss_kb = 0;
	n->unused = 0;
	/* Since Linux 6.8. */
	if (bpf_core_field_exists(ctx->shmem_rss))
		n->rss_kb = ctx->anon_rss + ctx->file_rss + ctx->shmem_rss;
	bpf_ringbuf_submit(n, BPF_RB_FORCE_WAKEUP);
	return 0;
}
