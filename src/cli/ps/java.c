/* src/cli/ps/java.c: see java.h. */
#include "cli/ps/java.h"

#include <stdio.h>

#include "java/detect.h"

void ps_java_describe(const struct proc_maps *maps, struct ps_entry *e)
{
	struct java_vm vm;

	if (java_detect(&e->info.id, maps, &vm, NULL) <= 0)
		return;
	if (vm.kind != JAVA_NATIVE_IMAGE) {
		(void)snprintf(e->runtime, sizeof(e->runtime), "java");
		(void)snprintf(e->version, sizeof(e->version), "%s", vm.version);
	}
	e->remedy[0] = 0;
	e->cause = vm.reason ? vm.cause : ERR_CAUSE_DISABLED;
	if (vm.reason) {
		(void)snprintf(e->reason, sizeof(e->reason), "%s: %s", vm.name, vm.reason);
		return;
	}
	/* Touching a JVM is the user's choice. */
	(void)snprintf(e->reason, sizeof(e->reason), "off by default");
	(void)snprintf(e->remedy, sizeof(e->remedy), "use sonde java %d, or sonde run --java",
		       (int)vm.id.pid);
}
