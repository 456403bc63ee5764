/* src/golang/binary/layout.c: the table of releases; see layout.h. */
#include "golang/binary/layout.h"

#include <errno.h>

#include "base/cleanup.h"

/*
 * Sources for each row: runtime/symtab.go (moduledata), runtime/mprof.go (memRecord, bucket,
 * mProfCycle, maxStack / debug.profstackdepth), runtime/pprof/protomem.go (writeHeapProto) and
 * runtime/symtab.go or internal/abi/symtab.go (FuncID) of that release.
 */
static const struct golang_layout layouts[] = {
	/*  md: gofunc, textsectmap, next | cycle words, shift | depth | pprof | gopanic, panicwrap,
	   sigpanic, wrapper */
	{17, GOLANG_PCLN_116, 0, 296, 528, 4, 0, 32, false, false, 9, 15, 19, 22},
	{18, GOLANG_PCLN_118, 304, 312, 544, 4, 0, 32, false, false, 9, 14, 18, 21},
	{19, GOLANG_PCLN_118, 304, 312, 544, 4, 1, 32, false, false, 9, 14, 18, 21},
	{20, GOLANG_PCLN_120, 320, 328, 560, 4, 1, 32, false, false, 9, 14, 18, 21},
	{21, GOLANG_PCLN_120, 320, 328, 584, 4, 1, 32, false, false, 9, 14, 18, 21},
	{22, GOLANG_PCLN_120, 320, 328, 584, 4, 1, 32, false, false, 10, 15, 19, 22},
	{23, GOLANG_PCLN_120, 320, 328, 576, 4, 1, 1040, false, false, 10, 15, 19, 22},
	{24, GOLANG_PCLN_120, 320, 328, 576, 4, 1, 1040, true, false, 10, 15, 19, 22},
	{25, GOLANG_PCLN_120, 320, 328, 576, 4, 1, 1040, true, false, 10, 15, 20, 23},
	{26, GOLANG_PCLN_120, 320, 336, 584, 4, 1, 1040, true, false, 10, 15, 20, 23},
	{27, GOLANG_PCLN_120, 344, 360, 560, 2, 1, 1040, true, true, 10, 15, 20, 23},
};

int golang_layout_for(unsigned int minor, const struct golang_layout **ret_layout, struct err *err)
{
	for (size_t i = 0; i < ARRAY_SIZE(layouts); i++) {
		if (layouts[i].minor == minor) {
			*ret_layout = &layouts[i];
			return 0;
		}
	}
	err_write(err, "Go 1.%u is not supported by this sonde (1.%d to 1.%d are)", minor,
		  GOLANG_OLDEST_MINOR, GOLANG_NEWEST_MINOR);
	err_write_remedy(err, ERR_CAUSE_UNKNOWN_VERSION,
			 "use --assume-layout 1.%d to try that release's layout",
			 minor > GOLANG_NEWEST_MINOR ? GOLANG_NEWEST_MINOR : GOLANG_OLDEST_MINOR);
	return -ENOTSUP;
}
