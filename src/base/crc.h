/* src/base/crc.h: CRC-32C (Castagnoli), the checksum of what we write to disk. */
#pragma once

#include <stdint.h>

#include "base/view.h"

uint32_t crc32c(struct view bytes);
