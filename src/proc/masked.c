/*
 * src/proc/masked.c: command lines without their secrets; see cmdline.h.
 *
 * What hides too much is a nuisance, what hides too little a leak: in doubt it is hidden. Nobody
 * can tell all secrets by their looks, and docs/SECURITY.md says so.
 */
#include <string.h>
#include <strings.h>

#include "base/cleanup.h"
#include "base/text.h"
#include "proc/cmdline.h"

#define MASK "***"
/* Shorter names before an '@' are users. */
#define MASKED_TOKEN_MIN 20
#define MASKED_KEY_MAX 128

/* What is written so far; the rest is dropped. */
struct masked {
	char *dst;
	size_t cap; /* without the NUL */
	size_t len;
	bool is_cut;
	bool hides_next; /* the value of a secret comes next */
};

static void masked_add(struct masked *m, struct view text)
{
	size_t n = MIN(text.len, m->cap - m->len);

	if (n)
		memcpy(m->dst + m->len, text.data, n);
	m->len += n;
	m->is_cut |= n < text.len;
}

/* Whether the key has this word in it, between anything but letters. */
static bool key_has_word(const char *key, const char *word)
{
	size_t n = strlen(word);

	for (const char *at = key; (at = strstr(at, word)); at++) {
		bool begins = at == key || at[-1] < 'a' || at[-1] > 'z';

		if (begins && (at[n] < 'a' || at[n] > 'z'))
			return true;
	}
	return false;
}

static bool ends_with(const char *text, const char *end)
{
	size_t n = strlen(text), k = strlen(end);

	return n >= k && strcmp(text + n - k, end) == 0;
}

/* By the name of an option, a variable or a header. */
static bool key_is_secret(struct view key)
{
	static const char *const parts[] = {"passw",	  "passphrase", "secret",     "token",
					    "apikey",	  "credential", "authoriz",   "access-key",
					    "access_key", "accesskey",	"privatekey", "api_key",
					    "api-key"};
	static const char *const words[] = {"pass", "passin", "passout", "pwd", "pw", "auth"};
	static const char *const files[] = {"file", "path", "dir"};
	char text[MASKED_KEY_MAX + 1];
	size_t n = MIN(key.len, (size_t)MASKED_KEY_MAX);

	/* The end of a long one tells what it is. */
	for (size_t i = 0; i < n; i++) {
		uint8_t c = key.data[key.len - n + i];

		text[i] = (char)(c >= 'A' && c <= 'Z' ? c | 0x20 : c ? c : '?');
	}
	text[n] = 0;
	if (strcmp(text, "pwd") == 0 || strcmp(text, "oldpwd") == 0)
		return false;
	for (size_t i = 0; i < ARRAY_SIZE(files); i++)
		if (ends_with(text, files[i]))
			return false;
	for (size_t i = 0; i < ARRAY_SIZE(parts); i++)
		if (strstr(text, parts[i]))
			return true;
	for (size_t i = 0; i < ARRAY_SIZE(words); i++)
		if (key_has_word(text, words[i]))
			return true;
	return ends_with(text, "_key") || ends_with(text, "-key");
}

static bool is_any(uint8_t c, const char *of)
{
	return c && strchr(of, c);
}

/* Of "scheme://user:password@host": the password; or a token in its place. */
static bool url_secret(struct view word, size_t at, struct view *ret)
{
	size_t begin = at + 3, end = begin, colon = 0, user_end = 0;

	for (; end < word.len && !is_any(word.data[end], "/?#\"' "); end++) {
		if (word.data[end] == ':' && !colon)
			colon = end;
		if (word.data[end] == '@')
			user_end = end;
	}
	if (!user_end)
		return false;
	if (colon && colon < user_end)
		begin = colon + 1;
	else if (user_end - begin < MASKED_TOKEN_MIN)
		return false;
	*ret = view_of(word.data + begin, user_end - begin);
	return ret->len > 0;
}

/* The secret behind the '=' or ':' at this place, if it is one of a key. */
static bool word_secret(struct view word, size_t at, struct view *ret)
{
	size_t from = at, end = word.len;
	bool is_query;

	if (word.data[at] == ':' && word.len - at > 2 && word.data[at + 1] == '/' &&
	    word.data[at + 2] == '/')
		return url_secret(word, at, ret);
	if (word.data[at] != '=' && word.data[at] != ':')
		return false;
	while (from > 0 && !is_any(word.data[from - 1], "?&;,{(=: \t\n"))
		from--;
	if (!key_is_secret(view_of(word.data + from, at - from)))
		return false;
	/* In the query of a URL the next parameter is another. */
	is_query = from > 0 && is_any(word.data[from - 1], "?&");
	if (is_query)
		for (end = at + 1; end < word.len && word.data[end] != '&';)
			end++;
	*ret = view_of(word.data + at + 1, end - at - 1);
	return ret->len > 0;
}

/* One word, its secrets hidden. Returns the one that it ends in; empty if none. */
static struct view masked_add_word(struct masked *m, struct view word)
{
	struct view secret, last = {0};
	size_t from = 0;

	for (size_t at = 0; at < word.len; at++) {
		if (!word_secret(word, at, &secret))
			continue;
		masked_add(m, view_of(word.data + from, (size_t)(secret.data - word.data) - from));
		masked_add(m, view_str(MASK));
		from = (size_t)(secret.data - word.data) + secret.len;
		last = from == word.len ? secret : last;
		at = from - 1;
	}
	masked_add(m, view_of(word.data + from, word.len - from));
	return last;
}

/* Whether the value is in the next word: "--password", "Authorization:". */
static bool hides_next(struct view word)
{
	if (word.len < 2)
		return false;
	if (word.data[word.len - 1] == ':' || word.data[word.len - 1] == '=')
		return key_is_secret(view_of(word.data, word.len - 1));
	return word.data[0] == '-' && !memchr(word.data, '=', word.len) && key_is_secret(word);
}

/* A header's value may have several words: "Authorization: Basic x". */
static bool hides_rest(struct view word)
{
	return word.data[word.len - 1] == ':' && hides_next(word);
}

static struct view word_at(struct view text, size_t at)
{
	size_t n = 0;

	while (at + n < text.len && !is_any(text.data[at + n], " \t\n"))
		n++;
	return view_of(text.data + at, n);
}

/* Where a value ends that begins with a quotation mark; `end` if it does not. */
static size_t quoted_end(struct view text, struct view value, size_t end)
{
	size_t begin = value.len ? (size_t)(value.data - text.data) : text.len;
	const uint8_t *close;

	if (begin == text.len || !is_any(text.data[begin], "\"'"))
		return end;
	close = memchr(text.data + begin + 1, text.data[begin], text.len - begin - 1);
	return close ? MAX(end, (size_t)(close - text.data) + 1) : text.len;
}

/* An argument may be a command line itself (sh -c), so each of its words is looked at. */
static void masked_add_words(struct masked *m, struct view arg)
{
	for (size_t at = 0; at < arg.len;) {
		struct view word = word_at(arg, at), secret = word;

		if (!word.len) {
			masked_add(m, view_of(arg.data + at++, 1));
			continue;
		}
		if (m->hides_next)
			masked_add(m, view_str(MASK));
		else
			secret = masked_add_word(m, word);
		m->hides_next = !m->hides_next && hides_next(word);
		/* An option that is the whole argument has all of it as its value. */
		if (at == 0 && secret.len && secret.len < word.len)
			return;
		at = quoted_end(arg, secret, at + word.len);
		if (hides_rest(word) && at < arg.len) {
			masked_add(m, view_str(" " MASK));
			m->hides_next = false;
			return;
		}
	}
}

static void masked_add_arg(struct masked *m, struct view arg)
{
	if (!m->hides_next || !arg.len) {
		masked_add_words(m, arg);
		return;
	}
	m->hides_next = false;
	masked_add(m, view_str(MASK));
}

/* Options of one letter for secrets, by program: "mysql -pSECRET". */
static const struct {
	const char *program;
	char letter;
	bool attached_only;
} letters[] = {
	{"mysql", 'p', true}, {"mariadb", 'p', true},	 {"sshpass", 'p', false},
	{"curl", 'u', false}, {"redis-cli", 'a', false}, {"ldap", 'w', false},
};

static bool letter_hides(struct view program, struct view arg, bool *ret_next)
{
	const uint8_t *slash = program.len ? memrchr(program.data, '/', program.len) : NULL;

	if (slash)
		program = view_of(slash + 1, program.len - (size_t)(slash + 1 - program.data));
	for (size_t i = 0; i < ARRAY_SIZE(letters); i++) {
		if (!view_starts_with(program, letters[i].program) || arg.len < 2 ||
		    arg.data[0] != '-' || arg.data[1] != (uint8_t)letters[i].letter)
			continue;
		*ret_next = arg.len == 2 && !letters[i].attached_only;
		return arg.len > 2 || *ret_next;
	}
	return false;
}

/* Ends it within a character's bytes nowhere, and says that there was more. */
static void masked_end(struct masked *m)
{
	static const char more[] = "...";

	if (m->is_cut && m->cap >= sizeof(more)) {
		m->len = MIN(m->len, m->cap - (sizeof(more) - 1));
		while (m->len && ((uint8_t)m->dst[m->len] & 0xc0) == 0x80)
			m->len--;
		memcpy(m->dst + m->len, more, sizeof(more) - 1);
		m->len += sizeof(more) - 1;
	}
	m->dst[m->len] = 0;
	text_clean(m->dst, m->len);
}

void proc_cmdline_text(struct view args, char *dst, size_t cap)
{
	struct masked m = {.dst = dst, .cap = cap - 1};
	struct view arg, program = {0};
	size_t at = 0;

	/* A title leaves the room of what was there before: NULs. */
	while (args.len && args.data[args.len - 1] == 0)
		args.len--;
	for (size_t i = 0; !m.is_cut && proc_cmdline_next(args, &at, &arg); i++) {
		bool next = false;

		if (i == 0)
			program = arg;
		else
			masked_add(&m, view_str(" "));
		if (!m.hides_next && i > 0 && letter_hides(program, arg, &next)) {
			masked_add(&m, view_of(arg.data, 2));
			if (!next)
				masked_add(&m, view_str(MASK));
			m.hides_next = next;
			continue;
		}
		masked_add_arg(&m, arg);
	}
	masked_end(&m);
}
