/* src/java/detect.c: see detect.h. */
#include "java/detect.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/io.h"
#include "elf/image.h"
#include "java/attach/target.h"
#include "java/hsperf.h"
#include "proc/aide/aides.h"
#include "proc/file.h"
#include "proc/named.h"
#include "proc/text.h"

#define RELEASE_MAX ((size_t)64 << 10)

/* Takes a number and what follows it; 0 if there is none, or if it has more than five digits. */
static unsigned int version_take(const char **at)
{
	unsigned int n = 0;
	size_t digits = strspn(*at, "0123456789");

	if (digits > 5)
		return 0;
	for (size_t i = 0; i < digits; i++)
		n = n * 10 + (unsigned int)((*at)[i] - '0');
	*at += digits;
	return n;
}

/* "1.8.0_462" is 8, "17.0.15" is 17: in old versions, the update follows an underscore. */
void java_parse_version(const char *version, unsigned int *ret_major, unsigned int *ret_update)
{
	bool old = strncmp(version, "1.", 2) == 0;
	const char *at = old ? version + 2 : version;

	*ret_major = version_take(&at);
	*ret_update = 0;
	if (*at++ != '.')
		return;
	(void)version_take(&at);
	if (*at++ == (old ? '_' : '.'))
		*ret_update = version_take(&at);
}

static const char *path_base(const char *path)
{
	const char *slash = strrchr(path, '/');

	return slash ? slash + 1 : path;
}

static const struct proc_map *maps_find_base(const struct proc_maps *maps, const char *prefix)
{
	for (size_t i = 0; i < maps->len; i++)
		if (strncmp(path_base(maps->maps[i].path), prefix, strlen(prefix)) == 0)
			return &maps->maps[i];
	return NULL;
}

static void vm_lacks(struct java_vm *vm, enum err_cause cause, const char *reason)
{
	vm->cause = cause;
	vm->reason = reason;
}

/* name NULL: keep the name it has. */
static void vm_refuse(struct java_vm *vm, enum java_kind kind, const char *name, const char *reason)
{
	vm->kind = kind;
	vm->commands = JAVA_COMMANDS_NO;
	vm_lacks(vm, ERR_CAUSE_UNSUPPORTED, reason);
	if (name)
		(void)snprintf(vm->name, sizeof(vm->name), "%s", name);
}

/* Built by GraalVM's native-image: its heap is a section of the executable. */
static bool is_native_image(const struct proc_id *id, const struct proc_maps *maps)
{
	_cleanup_(elf_image_closep) struct elf_image *image = NULL;
	_cleanup_close_ int fd = -1;
	_cleanup_(buf_release) struct buf link = buf_with_max(PATH_MAX);
	const char *exe = NULL;

	if (proc_aides_read_link(id->pid, "exe", &link) == 0)
		exe = buf_cstr(&link);
	if (!exe)
		return false;
	for (size_t i = 0; i < maps->len; i++) {
		if (strcmp(maps->maps[i].path, exe) != 0)
			continue;
		if (proc_file_open_mapped(id->pid, &maps->maps[i], &fd, NULL) < 0 ||
		    elf_image_open_fd(fd, &image, NULL) < 0)
			return false;
		return elf_image_section(image, ".svm_heap") != NULL;
	}
	return false;
}

bool java_parse_release(const char *text, char *dst, size_t cap)
{
	static const char key[] = "JAVA_VERSION=\"";
	const char *at = strstr(text, key);

	if (!at)
		return false;
	at += sizeof(key) - 1;
	proc_text_copy(dst, cap, view_of(at, strcspn(at, "\"\n")));
	return dst[0] != 0;
}

/* The file `release` of the JDK, a few directories above the library. */
static void vm_read_release(const struct proc_map *libjvm, struct java_vm *vm)
{
	char path[PATH_MAX];
	char *slash;

	if (snprintf(path, sizeof(path), "%s", libjvm->path) >= (int)sizeof(path) - 16)
		return;
	slash = strrchr(path, '/');
	/* lib/server/libjvm.so, and jre/lib/amd64/server/libjvm.so before JDK 9. */
	for (int up = 0; slash && up < 4; up++) {
		_cleanup_(buf_release) struct buf text = buf_with_max(RELEASE_MAX);
		_cleanup_close_ int fd = -1;
		const char *s;

		*slash = 0;
		slash = strrchr(path, '/');
		if (!slash || up == 0)
			continue;
		if (proc_named_open(vm->id.pid, path, "release", &fd) < 0 ||
		    io_read_all(fd, &text) < 0)
			continue;
		s = buf_cstr(&text);
		if (s && java_parse_release(s, vm->version, sizeof(vm->version)))
			return;
	}
}

/* As for the JVM, the last one wins. */
static bool argument_is_on(struct view arguments, const char *flag)
{
	bool on = true;

	while (arguments.len) {
		const uint8_t *space = memchr(arguments.data, ' ', arguments.len);
		size_t n = space ? (size_t)(space - arguments.data) : arguments.len;
		struct view one = view_of(arguments.data, n);

		if (n == strlen(flag) + 5 && view_starts_with(one, "-XX:") &&
		    memcmp(one.data + 5, flag, strlen(flag)) == 0)
			on = one.data[4] != '-';
		n += space != NULL;
		arguments = view_of(arguments.data + n, arguments.len - n);
	}
	return on;
}

bool java_hides_allocs(unsigned int major, const char *collector, struct view arguments)
{
	/* Collectors with one space for all threads, which compiled code fills by itself. */
	static const char *const sharing[] = {"PSScavenge", "Copy", "PCopy"};
	bool shares = !collector[0];

	for (size_t i = 0; i < ARRAY_SIZE(sharing); i++)
		shares |= strcmp(collector, sharing[i]) == 0;
	/* Without tiered compilation there is no C1 code. */
	return major == 8 && shares && argument_is_on(arguments, "FastTLABRefill") &&
	       argument_is_on(arguments, "TieredCompilation");
}

static void vm_read_allocs(const struct java_hsperf *h, struct java_vm *vm)
{
	struct view arguments = {};
	struct java_counter c;
	char collector[32];
	size_t at = 0;

	if (!java_hsperf_text(h, "sun.gc.collector.0.name", collector, sizeof(collector)))
		return;
	while (java_hsperf_next(h, &at, &c) > 0)
		if (c.is_text && view_eq(c.name, view_str("java.rt.vmArgs")))
			arguments = c.text;
	java_parse_version(vm->version, &vm->major, &vm->update);
	vm->hides_allocs = java_hides_allocs(vm->major, collector, arguments);
}

static void vm_read_counters(const struct proc_maps *maps, struct java_vm *vm)
{
	_cleanup_(java_hsperf_closep) struct java_hsperf *h = NULL;
	char capabilities[80] = "";
	int r;

	vm->commands = JAVA_COMMANDS_UNKNOWN;
	if (java_hsperf_open(&vm->id, maps, &h, NULL) < 0)
		return;
	r = java_hsperf_read(h, NULL);
	if (r == -EAGAIN)
		vm->commands = JAVA_COMMANDS_NOT_YET;
	if (r < 0)
		return;
	(void)java_hsperf_text(h, "java.property.java.version", vm->version, sizeof(vm->version));
	(void)java_hsperf_text(h, "java.property.java.vm.name", vm->name, sizeof(vm->name));
	if (!java_hsperf_text(h, "sun.rt.jvmCapabilities", capabilities, sizeof(capabilities)))
		vm->commands = JAVA_COMMANDS_NOT_YET;
	else
		vm->commands = capabilities[0] == '1' ? JAVA_COMMANDS_YES : JAVA_COMMANDS_NO;
	vm_read_allocs(h, vm);
}

static bool vm_has_recorder(const struct java_vm *vm)
{
	return vm->major >= 11 || (vm->major == 8 && vm->update >= 262);
}

static void vm_describe_hotspot(const struct proc_maps *maps, const struct proc_map *libjvm,
				struct java_vm *vm)
{
	vm->kind = JAVA_HOTSPOT;
	vm_read_counters(maps, vm);
	if (!vm->version[0])
		vm_read_release(libjvm, vm);
	java_parse_version(vm->version, &vm->major, &vm->update);
	if (vm->commands == JAVA_COMMANDS_UNKNOWN)
		vm->hides_allocs = java_hides_allocs(vm->major, "", (struct view){});
	/* Other JVMs have a libjvm.so, too: Zing, JamVM, CACAO. */
	if (vm->name[0] && !strstr(vm->name, "OpenJDK") && !strstr(vm->name, "HotSpot"))
		vm_refuse(vm, JAVA_OTHER, NULL, "a JVM other than HotSpot");
	else if (vm->commands == JAVA_COMMANDS_NO)
		vm_lacks(vm, ERR_CAUSE_UNSUPPORTED,
			 "it does not accept commands (-XX:+DisableAttachMechanism)");
	else if (vm->major == 0)
		vm_lacks(vm, ERR_CAUSE_UNKNOWN_VERSION, "unknown version");
	else if (!vm_has_recorder(vm))
		vm_lacks(vm, ERR_CAUSE_UNKNOWN_VERSION,
			 "this release has no Flight Recorder; 8u262, 11 and later have it");
	if (!vm->name[0])
		(void)snprintf(vm->name, sizeof(vm->name), "HotSpot");
}

int java_detect(const struct proc_id *id, const struct proc_maps *maps, struct java_vm *ret_vm,
		struct err *err)
{
	const struct proc_map *libjvm = maps_find_base(maps, "libjvm.so");
	struct java_vm vm = {.id = *id};
	int r;

	/* OpenJ9 also has a libjvm.so, which loads its own library. */
	if (maps_find_base(maps, "libj9vm"))
		vm_refuse(&vm, JAVA_OPENJ9, "OpenJ9", "OpenJ9 has no Flight Recorder");
	else if (maps_find_base(maps, "libart.so"))
		vm_refuse(&vm, JAVA_OTHER, "ART", "a JVM other than HotSpot");
	else if (libjvm)
		vm_describe_hotspot(maps, libjvm, &vm);
	else if (is_native_image(id, maps))
		vm_refuse(&vm, JAVA_NATIVE_IMAGE, "GraalVM native image",
			  "compiled ahead of time: profiled like native code");
	else
		return 0;
	r = proc_id_check(id, err);
	if (r < 0)
		return r;
	*ret_vm = vm;
	return 1;
}

static int detect_fresh(const struct proc_id *id, struct java_vm *ret_vm, struct err *err)
{
	_cleanup_(proc_maps_release) struct proc_maps maps = {};
	int r = proc_maps_read(id->pid, &maps, err);

	return r < 0 ? r : java_detect(id, &maps, ret_vm, err);
}

int java_detect_pid(pid_t pid, struct java_vm *ret_vm, struct err *err)
{
	struct proc_id id;
	int r = proc_id_of(pid, &id, err);

	return r < 0 ? r : detect_fresh(&id, ret_vm, err);
}
