/*
 * src/cpu/symbols/demangle_rust.c: see demangle_rust.h. A recursive-descent parser that prints as
 * it goes. A letter starts each production:
 *
 *   path   C crate | M impl | X impl of a trait | Y type as trait | N ns path name | I path args E
 *   type   one letter each for the basic ones | A S T R Q P O F D | a path
 *   const  type and hex digits | p
 *   B      the same as at an earlier place
 */
#include "cpu/symbols/demangle_rust.h"

#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include "base/view.h"
#include "cpu/symbols/punycode.h"

#define RUST_MAX_DEPTH 96
/* Back references let a short name stand for an endless one. */
#define RUST_MAX_STEPS 8192

struct rust {
	struct view sym; /* after "_R" */
	size_t at;
	char *dst;
	size_t cap, len;
	uint32_t depth, steps;
	uint32_t hidden;    /* above 0: parse without printing */
	uint64_t lifetimes; /* bound by the enclosing binders */
	bool failed;
	bool is_cut;
};

static void rust_path(struct rust *r, bool in_value);
static void rust_type(struct rust *r);
static void rust_const(struct rust *r);

static bool rust_stops(const struct rust *r)
{
	return r->failed || r->is_cut;
}

static void rust_print_bytes(struct rust *r, const void *data, size_t len)
{
	size_t left = r->cap - 1 - r->len;

	if (r->hidden || rust_stops(r) || !data)
		return;
	r->is_cut = len > left;
	if (r->is_cut)
		len = left;
	memcpy(r->dst + r->len, data, len);
	r->len += len;
}

static void rust_print(struct rust *r, const char *text)
{
	rust_print_bytes(r, text, strlen(text));
}

static void rust_print_number(struct rust *r, uint64_t number)
{
	char text[24];

	(void)snprintf(text, sizeof(text), "%llu", (unsigned long long)number);
	rust_print(r, text);
}

/* 0 at the end: not a letter of the grammar. */
static uint8_t rust_peek(const struct rust *r)
{
	return r->at < r->sym.len ? r->sym.data[r->at] : 0;
}

static uint8_t rust_next(struct rust *r)
{
	uint8_t c = rust_peek(r);

	if (c == 0)
		r->failed = true;
	else
		r->at++;
	return c;
}

static bool rust_eat(struct rust *r, uint8_t c)
{
	if (rust_stops(r) || rust_peek(r) != c)
		return false;
	r->at++;
	return true;
}

/* Every production is entered here, to bound depth and steps. */
static bool rust_enter(struct rust *r)
{
	if (rust_stops(r))
		return false;
	if (++r->steps > RUST_MAX_STEPS || r->depth >= RUST_MAX_DEPTH) {
		r->failed = true;
		return false;
	}
	r->depth++;
	return true;
}

/* "_" is 0, "0_" is 1, "1_" is 2. */
static uint64_t rust_base62(struct rust *r)
{
	uint64_t value = 0;

	if (rust_eat(r, '_'))
		return 0;
	while (!rust_stops(r) && !rust_eat(r, '_')) {
		uint8_t c = rust_next(r);
		uint64_t digit = c >= '0' && c <= '9'	? (uint64_t)c - '0'
				 : c >= 'a' && c <= 'z' ? (uint64_t)c - 'a' + 10
				 : c >= 'A' && c <= 'Z' ? (uint64_t)c - 'A' + 36
							: 62;

		r->failed = r->failed || digit == 62 || value > (UINT64_MAX - 63) / 62;
		value = value * 62 + digit;
	}
	return value + 1;
}

/* The number after its letter; 0 if the letter is absent. */
static uint64_t rust_tagged(struct rust *r, uint8_t letter)
{
	return rust_eat(r, letter) ? rust_base62(r) + 1 : 0;
}

struct rust_name {
	struct view text;
	bool is_punycode;
};

/* [u] length [_] bytes */
static struct rust_name rust_identifier(struct rust *r)
{
	struct rust_name name = {.is_punycode = rust_eat(r, 'u')};
	uint64_t len = 0;
	uint8_t c = rust_next(r);

	if (c < '0' || c > '9')
		r->failed = true;
	if (rust_stops(r))
		return name;
	len = (uint64_t)c - '0';
	while (len && rust_peek(r) >= '0' && rust_peek(r) <= '9' && len < r->sym.len)
		len = len * 10 + (uint64_t)(rust_next(r) - '0');
	(void)rust_eat(r, '_');
	if (!view_sub(r->sym, r->at, len, &name.text))
		r->failed = true;
	else
		r->at += len;
	return name;
}

static void rust_print_name(struct rust *r, struct rust_name name)
{
	char text[CPU_PUNYCODE_MAX_BYTES];
	ssize_t n;

	if (rust_stops(r) || r->hidden)
		return;
	if (!name.is_punycode) {
		rust_print_bytes(r, name.text.data, name.text.len);
		return;
	}
	n = cpu_punycode_decode(name.text, '_', text, sizeof(text));
	if (n < 0)
		r->failed = true;
	else
		rust_print_bytes(r, text, (size_t)n);
}

/* Continues at an earlier position, then returns. */
static void rust_backref(struct rust *r, void (*read)(struct rust *r, bool in_value), bool in_value)
{
	size_t here = r->at - 1, back;
	uint64_t target = rust_base62(r);

	/* Do not follow references if not printing. */
	if (target >= here)
		r->failed = true;
	if (rust_stops(r) || r->hidden)
		return;
	back = r->at;
	r->at = (size_t)target;
	read(r, in_value);
	r->at = back;
}

static void rust_lifetime(struct rust *r, uint64_t index)
{
	uint64_t depth;
	char letter[] = "'a";

	if (index == 0) {
		rust_print(r, "'_");
		return;
	}
	if (index > r->lifetimes) {
		r->failed = true;
		return;
	}
	depth = r->lifetimes - index;
	if (depth < 26) {
		letter[1] = (char)('a' + depth);
		rust_print(r, letter);
		return;
	}
	rust_print(r, "'_");
	rust_print_number(r, depth);
}

/* for<'a, 'b>; the caller subtracts as many lifetimes. */
static uint64_t rust_binder(struct rust *r)
{
	uint64_t n = rust_tagged(r, 'G');

	if (n == 0 || rust_stops(r))
		return 0;
	/* More than there are bytes: forged. */
	if (n > r->sym.len) {
		r->failed = true;
		return 0;
	}
	rust_print(r, "for<");
	for (uint64_t i = 0; i < n; i++) {
		if (i > 0)
			rust_print(r, ", ");
		r->lifetimes++;
		rust_lifetime(r, 1);
	}
	rust_print(r, "> ");
	return n;
}

static void rust_generic_args(struct rust *r)
{
	for (bool is_first = true; !rust_stops(r) && !rust_eat(r, 'E'); is_first = false) {
		if (!is_first)
			rust_print(r, ", ");
		if (rust_eat(r, 'L'))
			rust_lifetime(r, rust_base62(r));
		else if (rust_eat(r, 'K'))
			rust_const(r);
		else
			rust_type(r);
	}
}

/* Shows the type an impl is for, not which impl it is. */
static void rust_impl_path(struct rust *r)
{
	(void)rust_tagged(r, 's');
	r->hidden++;
	rust_path(r, false);
	r->hidden--;
}

static void rust_nested(struct rust *r, bool in_value)
{
	uint8_t ns = rust_next(r);
	uint64_t number;
	struct rust_name name;
	const char upper[] = {(char)ns, 0};

	if (!((ns >= 'a' && ns <= 'z') || (ns >= 'A' && ns <= 'Z')))
		r->failed = true;
	rust_path(r, in_value);
	number = rust_tagged(r, 's');
	name = rust_identifier(r);
	if (ns >= 'a') {
		if (name.text.len)
			rust_print(r, "::");
		rust_print_name(r, name);
		return;
	}
	rust_print(r, "::{");
	rust_print(r, ns == 'C' ? "closure" : ns == 'S' ? "shim" : upper);
	if (name.text.len)
		rust_print(r, ":");
	rust_print_name(r, name);
	rust_print(r, "#");
	rust_print_number(r, number);
	rust_print(r, "}");
}

static void rust_path_of(struct rust *r, uint8_t letter, bool in_value)
{
	switch (letter) {
	case 'C':
		(void)rust_tagged(r, 's');
		rust_print_name(r, rust_identifier(r));
		break;
	case 'N':
		rust_nested(r, in_value);
		break;
	case 'M':
	case 'X':
		rust_impl_path(r);
		/* fall through */
	case 'Y':
		rust_print(r, "<");
		rust_type(r);
		if (letter != 'M') {
			rust_print(r, " as ");
			rust_path(r, false);
		}
		rust_print(r, ">");
		break;
	case 'I':
		rust_path(r, in_value);
		rust_print(r, in_value ? "::<" : "<");
		rust_generic_args(r);
		rust_print(r, ">");
		break;
	case 'B':
		rust_backref(r, rust_path, in_value);
		break;
	default:
		r->failed = true;
	}
}

static void rust_path(struct rust *r, bool in_value)
{
	if (!rust_enter(r))
		return;
	rust_path_of(r, rust_next(r), in_value);
	r->depth--;
}

static const char *rust_basic(uint8_t letter)
{
	static const char *const names[26] = {
		['a' - 'a'] = "i8",   ['b' - 'a'] = "bool",  ['c' - 'a'] = "char",
		['d' - 'a'] = "f64",  ['e' - 'a'] = "str",   ['f' - 'a'] = "f32",
		['h' - 'a'] = "u8",   ['i' - 'a'] = "isize", ['j' - 'a'] = "usize",
		['l' - 'a'] = "i32",  ['m' - 'a'] = "u32",   ['n' - 'a'] = "i128",
		['o' - 'a'] = "u128", ['p' - 'a'] = "_",     ['s' - 'a'] = "i16",
		['t' - 'a'] = "u16",  ['u' - 'a'] = "()",    ['v' - 'a'] = "...",
		['x' - 'a'] = "i64",  ['y' - 'a'] = "u64",   ['z' - 'a'] = "!",
	};

	return letter >= 'a' && letter <= 'z' ? names[letter - 'a'] : NULL;
}

static void rust_reference(struct rust *r, bool is_mutable)
{
	rust_print(r, "&");
	if (rust_eat(r, 'L')) {
		uint64_t index = rust_base62(r);

		if (index) {
			rust_lifetime(r, index);
			rust_print(r, " ");
		}
	}
	if (is_mutable)
		rust_print(r, "mut ");
	rust_type(r);
}

static void rust_tuple(struct rust *r)
{
	size_t n = 0;

	rust_print(r, "(");
	for (; !rust_stops(r) && !rust_eat(r, 'E'); n++) {
		if (n > 0)
			rust_print(r, ", ");
		rust_type(r);
	}
	rust_print(r, n == 1 ? ",)" : ")");
}

static void rust_abi(struct rust *r)
{
	struct rust_name abi = {.text = view_str("C")};

	if (!rust_eat(r, 'C'))
		abi = rust_identifier(r);
	if (abi.text.len == 0 || abi.is_punycode)
		r->failed = true;
	rust_print(r, "extern \"");
	/* Dashes were written as underscores. */
	for (size_t i = 0; i < abi.text.len && !rust_stops(r); i++)
		rust_print_bytes(r, abi.text.data[i] == '_' ? "-" : (char *)&abi.text.data[i], 1);
	rust_print(r, "\" ");
}

static void rust_function(struct rust *r)
{
	uint64_t bound = rust_binder(r);

	if (rust_eat(r, 'U'))
		rust_print(r, "unsafe ");
	if (rust_eat(r, 'K'))
		rust_abi(r);
	rust_print(r, "fn(");
	for (bool is_first = true; !rust_stops(r) && !rust_eat(r, 'E'); is_first = false) {
		if (!is_first)
			rust_print(r, ", ");
		rust_type(r);
	}
	rust_print(r, ")");
	if (!rust_eat(r, 'u')) {
		rust_print(r, " -> ");
		rust_type(r);
	}
	r->lifetimes -= bound;
}

/* Like a path, but if it has generic arguments, their '>' is left to the caller. */
static void rust_open_path(struct rust *r, bool *is_open)
{
	if (!rust_enter(r))
		return;
	if (rust_eat(r, 'B')) {
		size_t here = r->at - 1, back;
		uint64_t target = rust_base62(r);

		r->failed = r->failed || target >= here;
		back = r->at;
		if (!rust_stops(r) && !r->hidden) {
			r->at = (size_t)target;
			rust_open_path(r, is_open);
			r->at = back;
		}
	} else if (rust_eat(r, 'I')) {
		rust_path(r, false);
		rust_print(r, "<");
		rust_generic_args(r);
		*is_open = true;
	} else {
		rust_path(r, false);
	}
	r->depth--;
}

static void rust_dyn(struct rust *r)
{
	uint64_t bound, lifetime;

	rust_print(r, "dyn ");
	bound = rust_binder(r);
	for (bool is_first = true; !rust_stops(r) && !rust_eat(r, 'E'); is_first = false) {
		bool is_open = false;

		if (!is_first)
			rust_print(r, " + ");
		rust_open_path(r, &is_open);
		while (rust_eat(r, 'p')) {
			rust_print(r, is_open ? ", " : "<");
			is_open = true;
			rust_print_name(r, rust_identifier(r));
			rust_print(r, " = ");
			rust_type(r);
		}
		if (is_open)
			rust_print(r, ">");
	}
	r->lifetimes -= bound;
	if (!rust_eat(r, 'L'))
		r->failed = true;
	lifetime = rust_base62(r);
	if (lifetime) {
		rust_print(r, " + ");
		rust_lifetime(r, lifetime);
	}
}

static void rust_type_backref(struct rust *r, bool in_value)
{
	(void)in_value;
	rust_type(r);
}

static void rust_type_of(struct rust *r, uint8_t letter)
{
	switch (letter) {
	case 'R':
	case 'Q':
		rust_reference(r, letter == 'Q');
		break;
	case 'P':
	case 'O':
		rust_print(r, letter == 'P' ? "*const " : "*mut ");
		rust_type(r);
		break;
	case 'A':
	case 'S':
		rust_print(r, "[");
		rust_type(r);
		if (letter == 'A') {
			rust_print(r, "; ");
			rust_const(r);
		}
		rust_print(r, "]");
		break;
	case 'T':
		rust_tuple(r);
		break;
	case 'F':
		rust_function(r);
		break;
	case 'D':
		rust_dyn(r);
		break;
	case 'B':
		rust_backref(r, rust_type_backref, false);
		break;
	default:
		r->at--;
		rust_path(r, false);
	}
}

static void rust_type(struct rust *r)
{
	const char *basic;
	uint8_t letter;

	if (!rust_enter(r))
		return;
	letter = rust_next(r);
	basic = rust_basic(letter);
	if (basic)
		rust_print(r, basic);
	else if (!r->failed)
		rust_type_of(r, letter);
	r->depth--;
}

/* Hex digits up to "_". False if the value exceeds 64 bits. */
static bool rust_hex(struct rust *r, uint64_t *ret_value, struct view *ret_digits)
{
	size_t start = r->at;
	uint64_t value = 0;

	while (!rust_stops(r) && !rust_eat(r, '_')) {
		uint8_t c = rust_next(r);

		if (!((c >= '0' && c <= '9') || (c >= 'a' && c <= 'f')))
			r->failed = true;
		value = value << 4 | (uint64_t)(c <= '9' ? c - '0' : c - 'a' + 10);
	}
	if (rust_stops(r) || !view_sub(r->sym, start, r->at - 1 - start, ret_digits))
		return false;
	*ret_value = value;
	return ret_digits->len <= 16;
}

static void rust_const_number(struct rust *r, bool is_signed)
{
	struct view digits = {0};
	uint64_t value = 0;
	bool fits;

	if (is_signed && rust_eat(r, 'n'))
		rust_print(r, "-");
	fits = rust_hex(r, &value, &digits);
	if (fits) {
		rust_print_number(r, value);
		return;
	}
	rust_print(r, "0x");
	if (!r->failed)
		rust_print_bytes(r, digits.data, digits.len);
}

static void rust_const_char(struct rust *r)
{
	struct view digits = {0};
	uint64_t value = 0;
	char text[8];
	size_t n;

	if (!rust_hex(r, &value, &digits))
		r->failed = true;
	n = r->failed ? 0
		      : cpu_punycode_utf8(value > UINT32_MAX ? UINT32_MAX : (uint32_t)value, text);
	if (n == 0)
		r->failed = true;
	rust_print(r, "'");
	rust_print_bytes(r, text, n);
	rust_print(r, "'");
}

static void rust_const_bool(struct rust *r)
{
	struct view digits = {0};
	uint64_t value = 2;

	if (!rust_hex(r, &value, &digits) || value > 1)
		r->failed = true;
	rust_print(r, value ? "true" : "false");
}

static void rust_const_backref(struct rust *r, bool in_value)
{
	(void)in_value;
	rust_const(r);
}

static void rust_const(struct rust *r)
{
	uint8_t type;

	if (!rust_enter(r))
		return;
	type = rust_next(r);
	if (type == 'B')
		rust_backref(r, rust_const_backref, false);
	else if (type == 'p')
		rust_print(r, "_");
	else if (type == 'b')
		rust_const_bool(r);
	else if (type == 'c')
		rust_const_char(r);
	else if (type && strchr("htmyoj", type))
		rust_const_number(r, false);
	else if (type && strchr("aslxni", type))
		rust_const_number(r, true);
	else
		r->failed = true;
	r->depth--;
}

bool cpu_demangle_rust(const char *name, char *dst, size_t cap, bool *ret_is_cut)
{
	/* Hide compiler suffixes (".cold", ".llvm.123"). */
	size_t len = strcspn(name, ".$");
	struct rust r = {.dst = dst, .cap = cap};

	/* A digit would mean a later version of the encoding. */
	if (strncmp(name, "_R", 2) != 0 || name[2] < 'A' || name[2] > 'Z')
		return false;
	r.sym = view_of(name + 2, len - 2);
	rust_path(&r, true);
	/* The instantiating crate, if given. */
	if (!rust_stops(&r) && r.at < r.sym.len) {
		r.hidden++;
		rust_path(&r, false);
		r.hidden--;
	}
	if (!rust_stops(&r) && r.at != r.sym.len)
		return false;
	dst[r.len] = 0;
	*ret_is_cut = r.is_cut;
	return !r.failed && r.len > 0;
}
