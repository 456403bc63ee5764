/* src/golang/binary/version.h: Go release names as found in binaries. */
#pragma once

#include <stdbool.h>

#include "base/view.h"

struct golang_version {
	unsigned int minor; /* 27 for go1.27.3 */
	char text[64];	    /* as found, up to the first blank after the release: "go1.27.3" */
};

/*
 * Understands "go1.27.3", "go1.27rc1", "go1.20.12 (vendor build)", "go1.22.1 X:loopvar",
 * "devel go1.28-0123abc ...", and bare "1.27". False for anything else.
 */
bool golang_version_parse(struct view text, struct golang_version *ret_version);
