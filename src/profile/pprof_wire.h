/*
 * src/profile/pprof_wire.h: the protobuf wire and the field numbers of profile.proto, for the
 * encoder and the decoder.
 *
 *   field:  varint (number << 3 | wire type), then by wire type:
 *           0 a varint   1 eight bytes   2 a varint length and that many bytes   5 four bytes
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/view.h"

enum pprof_wire {
	WIRE_VARINT = 0,
	WIRE_FIXED64 = 1,
	WIRE_BYTES = 2,
	WIRE_FIXED32 = 5,
};

struct pprof_field {
	uint64_t number;
	unsigned int wire;
	uint64_t value;	   /* of a number */
	struct view bytes; /* of a length-delimited field, within the message */
};

/* Reads one field and moves *off past it; false if the bytes are not a field. */
bool pprof_field_next(struct view msg, size_t *off, struct pprof_field *ret);

enum pprof_profile_field {
	PROFILE_SAMPLE_TYPE = 1,
	PROFILE_SAMPLE,
	PROFILE_MAPPING,
	PROFILE_LOCATION,
	PROFILE_FUNCTION,
	PROFILE_STRING_TABLE,
	PROFILE_DROP_FRAMES,
	PROFILE_KEEP_FRAMES,
	PROFILE_TIME_NANOS,
	PROFILE_DURATION_NANOS,
	PROFILE_PERIOD_TYPE,
	PROFILE_PERIOD,
	PROFILE_COMMENT,
	PROFILE_DEFAULT_TYPE,
	PROFILE_DOC_URL,
};

enum pprof_value_type_field {
	VALUE_TYPE_TYPE = 1,
	VALUE_TYPE_UNIT,
};

enum pprof_sample_field {
	SAMPLE_LOCATION = 1,
	SAMPLE_VALUE,
	SAMPLE_LABEL,
};

enum pprof_label_field {
	LABEL_KEY = 1,
	LABEL_STR,
	LABEL_NUM,
	LABEL_NUM_UNIT,
};

enum pprof_mapping_field {
	MAPPING_ID = 1,
	MAPPING_START,
	MAPPING_LIMIT,
	MAPPING_OFFSET,
	MAPPING_FILE,
	MAPPING_BUILD_ID,
	MAPPING_HAS_FUNCTIONS,
	MAPPING_HAS_FILENAMES,
	MAPPING_HAS_LINE_NUMBERS,
	MAPPING_HAS_INLINE_FRAMES,
};

enum pprof_location_field {
	LOCATION_ID = 1,
	LOCATION_MAPPING,
	LOCATION_ADDRESS,
	LOCATION_LINE,
	LOCATION_IS_FOLDED,
};

enum pprof_line_field {
	LINE_FUNCTION = 1,
	LINE_LINE,
	LINE_COLUMN,
};

enum pprof_function_field {
	FUNCTION_ID = 1,
	FUNCTION_NAME,
	FUNCTION_SYSTEM_NAME,
	FUNCTION_FILE,
	FUNCTION_START_LINE,
};
