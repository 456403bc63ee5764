/* src/oom/oom_shared.h: the BPF program's record of a victim. */
#pragma once

#include <linux/types.h>

struct oom_notice {
	__u64 mono_ns; /* when it was picked */
	__u64 rss_kb;  /* 0: not known */
	__u32 tgid;
	__u32 unused;
};
