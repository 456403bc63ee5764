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

enum profile_pprof_wire {
	PROFILE_WIRE_VARINT = 0,
	PROFILE_WIRE_FIXED64 = 1,
	PROFILE_WIRE_BYTES = 2,
	PROFILE_WIRE_FIXED32 = 5,
};

struct profile_pprof_field {
	uint64_t number;
	unsigned int wire;
	uint64_t value;	   /* of a number */
	struct view bytes; /* of a length-delimited field, within the message */
};

/* Reads one field and moves *off past it; false if the bytes are not a field. */
bool profile_pprof_field_next(struct view msg, size_t *off, struct profile_pprof_field *ret);

enum profile_pprof_profile_field {
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

enum profile_pprof_value_type_field {
	PROFILE_VALUE_TYPE_TYPE = 1,
	PROFILE_VALUE_TYPE_UNIT,
};

enum profile_pprof_sample_field {
	PROFILE_SAMPLE_LOCATION = 1,
	PROFILE_SAMPLE_VALUE,
	PROFILE_SAMPLE_LABEL,
};

enum profile_pprof_label_field {
	PROFILE_LABEL_KEY = 1,
	PROFILE_LABEL_STR,
	PROFILE_LABEL_NUM,
	PROFILE_LABEL_NUM_UNIT,
};

enum profile_pprof_mapping_field {
	PROFILE_MAPPING_ID = 1,
	PROFILE_MAPPING_START,
	PROFILE_MAPPING_LIMIT,
	PROFILE_MAPPING_OFFSET,
	PROFILE_MAPPING_FILE,
	PROFILE_MAPPING_BUILD_ID,
	PROFILE_MAPPING_HAS_FUNCTIONS,
	PROFILE_MAPPING_HAS_FILENAMES,
	PROFILE_MAPPING_HAS_LINE_NUMBERS,
	PROFILE_MAPPING_HAS_INLINE_FRAMES,
};

enum profile_pprof_location_field {
	PROFILE_LOCATION_ID = 1,
	PROFILE_LOCATION_MAPPING,
	PROFILE_LOCATION_ADDRESS,
	PROFILE_LOCATION_LINE,
	PROFILE_LOCATION_IS_FOLDED,
};

enum profile_pprof_line_field {
	PROFILE_LINE_FUNCTION = 1,
	PROFILE_LINE_LINE,
	PROFILE_LINE_COLUMN,
};

enum profile_pprof_function_field {
	PROFILE_FUNCTION_ID = 1,
	PROFILE_FUNCTION_NAME,
	PROFILE_FUNCTION_SYSTEM_NAME,
	PROFILE_FUNCTION_FILE,
	PROFILE_FUNCTION_START_LINE,
};
