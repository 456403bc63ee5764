/* src/profile/pprof_wire.c: see pprof_wire.h. */
#include "profile/pprof_wire.h"

bool profile_pprof_field_next(struct view msg, size_t *off, struct profile_pprof_field *ret)
{
	struct profile_pprof_field f = {0};
	uint64_t key, len;
	uint32_t fixed32;

	if (!view_varint(msg, off, &key))
		return false;
	f.number = key >> 3;
	f.wire = key & 7;
	switch (f.wire) {
	case PROFILE_WIRE_VARINT:
		if (!view_varint(msg, off, &f.value))
			return false;
		break;
	case PROFILE_WIRE_FIXED64:
		if (!view_u64(msg, *off, &f.value))
			return false;
		*off += sizeof(uint64_t);
		break;
	case PROFILE_WIRE_FIXED32:
		if (!view_u32(msg, *off, &fixed32))
			return false;
		f.value = fixed32;
		*off += sizeof(uint32_t);
		break;
	case PROFILE_WIRE_BYTES:
		if (!view_varint(msg, off, &len) || !view_sub(msg, *off, len, &f.bytes))
			return false;
		*off += len;
		break;
	default:
		return false;
	}
	*ret = f;
	return f.number != 0;
}
