"""What tools/check_names.py finds in a header, and what it thinks of it."""
import unittest

import check_names

HEADER = '''/* struct comment { */
#pragma once
#define ROOM_MAX(n) \\
	((n) + 1)
#define ROOM_TEMPORARY 1
#undef ROOM_TEMPORARY
struct elsewhere;
enum room_kind {
	ROOM_A, /* not, ROOM_X */
	ROOM_B = (1 << 2),
};
struct room {
	struct room_part {
		int member;
	} parts[2];
	int (*callback)(void *context);
};
DEFINE_CLEANUP(struct room, room_free)
int room_open(const char *path, struct room **ret) __attribute__((format(printf, 1, 2)));
static inline int room_first(const struct room *r)
{
	struct local { int x; } l = {room_open("a;b", NULL)};

	return l.x;
}
extern const char *const room_names[];
typedef int room_fn(void *context);
typedef struct room *(*room_maker)(void);
'''


class Names(unittest.TestCase):
    def test_a_header_exports_what_others_can_use(self):
        self.assertEqual(set(check_names.exported(HEADER)),
                         {("name", "ROOM_MAX"), ("tag", "room_kind"), ("name", "ROOM_A"), ("name", "ROOM_B"),
                          ("tag", "room"), ("tag", "room_part"), ("name", "room_open"), ("name", "room_first"),
                          ("name", "room_names"), ("name", "room_fn"), ("name", "room_maker")})

    def test_a_name_begins_with_its_room(self):
        rooms = {"proc": set(), "cpu": set(), "cli": set(), "pipeline": set()}
        for path, name, good in (("src/proc/mem.h", "proc_mem", True), ("src/proc/mem.h", "PROC_MAX", True),
                                 ("src/proc/mem.h", "proc", True), ("src/proc/mem.h", "procedure", False),
                                 ("src/proc/mem.h", "mem_read", False),
                                 ("src/cpu/symbols/cache.h", "symbols_cache", False),
                                 ("src/pipeline/record.h", "record_ref", True),
                                 ("src/pipeline/record.h", "buffer_ref", False),
                                 ("src/cli/render/render.h", "render_tree", True),
                                 ("src/cli/term.h", "term_width", True), ("src/cli/term.h", "width", False),
                                 ("src/cli/cmd/cpu_java.h", "cpu_java_start", False),
                                 ("src/elf/dwarf/const.h", "DW_AT_name", True)):
            self.assertEqual(check_names.wrong(path, name, rooms) is None, good, f"{path} {name}")
