/* src/cli/cmd/run_caps.h: which capabilities `sonde run` keeps; docs/SECURITY.md says what for. */
#pragma once

#include <stdint.h>

#include "agent/agent.h"

/* To collect, and to start the server. */
uint64_t cmd_run_caps(const struct agent_config *agent, const char *listen);
/* To read and write the data: none, unless its folder is somebody else's. */
uint64_t cmd_run_folder_caps(const char *data_dir);
