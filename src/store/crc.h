/* src/store/crc.h: CRC-32C (Castagnoli), which guards every block on disk. */
#pragma once

#include <stdint.h>

#include "base/view.h"

uint32_t crc32c(struct view bytes);
