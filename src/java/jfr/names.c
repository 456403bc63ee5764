/* src/java/jfr/names.c: see names.h. */
#include "java/jfr/names.h"

#include <string.h>

#include "base/cleanup.h"

#define NAMES_MAX 1024 /* bytes per name; the rest is cut */

/* Followed by a number or an address: lambdas, CGLIB, Byte Buddy, Hibernate, Mockito, Javassist. */
static const char *const generated[] = {
	"$$Lambda",	 "CGLIB$$",	   "$ByteBuddy$", "$HibernateProxy$",
	"$MockitoMock$", "_$$_javassist_", "_$$_jvst",
};

static bool is_digit(uint8_t c)
{
	return c >= '0' && c <= '9';
}

static bool is_separator(uint8_t c)
{
	return c == '.' || c == '/' || c == '+';
}

/* No part of a Java name starts with a digit; a hidden class has its address there. */
static size_t without_address(struct view name)
{
	for (size_t i = 0; i + 1 < name.len; i++)
		if (is_separator(name.data[i]) && is_digit(name.data[i + 1]))
			return i;
	return name.len;
}

static size_t without_digits(struct view name)
{
	size_t n = name.len;

	while (n > 0 && is_digit(name.data[n - 1]))
		n--;
	return n;
}

static bool contains(struct view name, const char *part)
{
	return name.len && memmem(name.data, name.len, part, strlen(part)) != NULL;
}

static struct view fold_class(struct view name)
{
	const uint8_t *found;

	for (size_t i = 0; name.len && i < ARRAY_SIZE(generated); i++) {
		size_t n = strlen(generated[i]);

		found = memmem(name.data, name.len, generated[i], n);
		if (!found)
			continue;
		while (n > 0 && (generated[i][n - 1] == '$' || generated[i][n - 1] == '_'))
			n--;
		return view_of(name.data, (size_t)(found - name.data) + n);
	}
	name.len = without_address(name);
	if (contains(name, "$Proxy") || contains(name, "Generated"))
		name.len = without_digits(name);
	return name;
}

static int append_dotted(struct buf *out, struct view name)
{
	static const char proxies[] = "jdk/proxy";
	size_t from = 0;
	int r;

	/* The module of proxies has a number, too. */
	if (view_starts_with(name, proxies)) {
		r = buf_append_str(out, "jdk.proxy");
		if (r < 0)
			return r;
		from = sizeof(proxies) - 1;
		while (from < name.len && is_digit(name.data[from]))
			from++;
	}
	r = buf_reserve(out, name.len);
	for (size_t i = from; r == 0 && i < name.len; i++)
		out->data[out->len++] = name.data[i] == '/' ? '.' : name.data[i];
	return r;
}

static const char *primitive(uint8_t letter)
{
	static const struct {
		uint8_t letter;
		const char *name;
	} names[] = {{'Z', "boolean"}, {'B', "byte"}, {'C', "char"},  {'S', "short"},
		     {'I', "int"},     {'J', "long"}, {'F', "float"}, {'D', "double"}};

	for (size_t i = 0; i < ARRAY_SIZE(names); i++)
		if (names[i].letter == letter)
			return names[i].name;
	return NULL;
}

int java_jfr_names_class(struct buf *out, struct view class_name)
{
	struct view name = view_of(class_name.data, MIN(class_name.len, (size_t)NAMES_MAX));
	size_t dimensions = 0;
	int r;

	while (dimensions < name.len && dimensions < 255 && name.data[dimensions] == '[')
		dimensions++;
	name = view_of(name.data ? name.data + dimensions : NULL, name.len - dimensions);
	if (dimensions && name.len == 1 && primitive(name.data[0])) {
		r = buf_append_str(out, primitive(name.data[0]));
	} else {
		if (dimensions && name.len > 2 && name.data[0] == 'L' &&
		    name.data[name.len - 1] == ';')
			name = view_of(name.data + 1, name.len - 2);
		r = append_dotted(out, fold_class(name));
	}
	for (size_t i = 0; r == 0 && i < dimensions; i++)
		r = buf_append_str(out, "[]");
	return r;
}

int java_jfr_names_method(struct buf *out, struct view class_name, struct view method,
			  bool is_native)
{
	int r = 0;

	if (class_name.len && !is_native) {
		r = java_jfr_names_class(out, class_name);
		if (r == 0)
			r = buf_append_byte(out, '.');
	}
	return r < 0 ? r : buf_append(out, method.data, MIN(method.len, (size_t)NAMES_MAX));
}

int java_jfr_names_thread(struct buf *out, struct view name, bool fold)
{
	int r = 0;

	name.len = MIN(name.len, (size_t)NAMES_MAX);
	if (!fold)
		return buf_append(out, name.data, name.len);
	for (size_t i = 0; r == 0 && i < name.len; i++) {
		if (!is_digit(name.data[i]))
			r = buf_append_byte(out, name.data[i]);
		else if (i == 0 || !is_digit(name.data[i - 1]))
			r = buf_append_byte(out, '#');
	}
	return r;
}

bool java_jfr_names_is_idle(struct view class_name, struct view method)
{
	static const struct {
		const char *class_name, *method;
	} idle[] = {
		{"sun/nio/ch/ServerSocketChannelImpl", "accept"},
		{"sun/nio/ch/NioSocketImpl", "accept"},
		{"java/net/ServerSocket", "accept"},
		{"java/net/AbstractPlainSocketImpl", "accept"}, /* before JDK 13 */
	};

	for (size_t i = 0; i < ARRAY_SIZE(idle); i++)
		if (view_eq(class_name, view_str(idle[i].class_name)) &&
		    view_eq(method, view_str(idle[i].method)))
			return true;
	return false;
}
