/* src/cli/options.c: see options.h. */
#include "cli/options.h"

#include <ctype.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/clock.h"

#define CLI_USAGE_WIDTH 80
/* Where the help of an option begins. */
#define CLI_USAGE_COLUMN 33
#define SUGGEST_MAX_LEN 128
#define SUGGEST_MAX_DISTANCE 2
/* A word of this length may have one more typo. */
#define SUGGEST_TYPO_LEN 6

/* The Levenshtein distance, ignoring case. */
static size_t cli_distance(const char *a, const char *b)
{
	size_t row[SUGGEST_MAX_LEN + 1];
	size_t len_a = strlen(a);
	size_t len_b = strlen(b);

	if (len_a > SUGGEST_MAX_LEN || len_b > SUGGEST_MAX_LEN)
		return SIZE_MAX;
	for (size_t j = 0; j <= len_b; j++)
		row[j] = j;
	for (size_t i = 1; i <= len_a; i++) {
		int letter = tolower((unsigned char)a[i - 1]);
		size_t diagonal = row[0];

		row[0] = i;
		for (size_t j = 1; j <= len_b; j++) {
			size_t replace = diagonal + (letter != tolower((unsigned char)b[j - 1]));

			diagonal = row[j];
			row[j] = MIN(MIN(row[j], row[j - 1]) + 1, replace);
		}
	}
	return row[len_b];
}

/* What was typed may be the start or another part of the candidate, or have typos. */
static size_t cli_unlikeness(const char *typed, const char *candidate)
{
	size_t len = strlen(typed);
	size_t max = MAX((size_t)SUGGEST_MAX_DISTANCE, len / SUGGEST_TYPO_LEN);
	size_t distance = cli_distance(typed, candidate);

	if (len >= 2 && strncasecmp(typed, candidate, len) == 0)
		distance = MIN(distance, 1);
	else if (len >= 3 && strcasestr(candidate, typed))
		distance = MIN(distance, 2);
	return distance > max || distance >= strlen(candidate) ? SIZE_MAX : distance;
}

void cli_suggestions_offer(struct cli_suggestions *s, const char *typed, const char *candidate)
{
	size_t distance = cli_unlikeness(typed, candidate);
	size_t at = 0;

	if (distance == SIZE_MAX)
		return;
	while (at < s->len && s->distances[at] <= distance) {
		if (strcmp(s->names[at], candidate) == 0)
			return;
		at++;
	}
	if (at == CLI_MAX_SUGGESTIONS)
		return;
	s->len = MIN(s->len + 1, (size_t)CLI_MAX_SUGGESTIONS);
	for (size_t i = s->len - 1; i > at; i--) {
		s->names[i] = s->names[i - 1];
		s->distances[i] = s->distances[i - 1];
	}
	s->names[at] = candidate;
	s->distances[at] = distance;
}

const char *cli_suggestions_text(const struct cli_suggestions *s, char *dst, size_t len)
{
	size_t used = 0;

	dst[0] = '\0';
	for (size_t i = 0; i < s->len && used < len; i++)
		used += (size_t)snprintf(dst + used, len - used, "%s'%s'",
					 i == 0		   ? ""
					 : i + 1 == s->len ? " or "
							   : ", ",
					 s->names[i]);
	return dst;
}

static int cli_unknown_option(const struct cli_command *command, const char *typed, size_t len,
			      struct err *err)
{
	struct cli_suggestions s = {};
	char name[SUGGEST_MAX_LEN + 1];

	(void)snprintf(name, sizeof(name), "%.*s", (int)MIN(len, sizeof(name) - 1), typed);
	for (size_t i = 0; i < command->n_options; i++) {
		/* Commands without formats have --json. */
		if (strcmp(name, "json") == 0 && strcmp(command->options[i].name, "format") == 0)
			return err_set(err, -EINVAL, "%s: unknown option --json; use -f json",
				       command->name);
		cli_suggestions_offer(&s, name, command->options[i].name);
	}
	cli_suggestions_offer(&s, name, "help");
	if (s.len)
		return err_set(err, -EINVAL, "%s: unknown option --%.*s; did you mean --%s?",
			       command->name, (int)len, typed, s.names[0]);
	return err_set(err, -EINVAL, "%s: unknown option --%.*s", command->name, (int)len, typed);
}

/* Walks over argv; at is the next word not consumed yet. */
struct cli_walk {
	const struct cli_command *command;
	int argc;
	char *const *argv;
	int at;
	struct cli_args *args;
};

static int cli_take_long(struct cli_walk *w, const char *word, struct err *err)
{
	const struct cli_command *c = w->command;
	const char *equals = strchr(word, '=');
	size_t len = equals ? (size_t)(equals - word) : strlen(word);

	if (!equals && strcmp(word, "help") == 0) {
		w->args->help = true;
		return 0;
	}
	for (size_t i = 0; i < c->n_options; i++) {
		const struct cli_option *o = &c->options[i];

		if (strlen(o->name) != len || strncmp(o->name, word, len) != 0)
			continue;
		if (!o->arg && equals)
			return err_set(err, -EINVAL, "--%s does not take a value", o->name);
		if (!o->arg)
			w->args->values[i] = "";
		else if (equals)
			w->args->values[i] = equals + 1;
		else if (w->at < w->argc)
			w->args->values[i] = w->argv[w->at++];
		else
			return err_set(err, -EINVAL, "--%s needs a value: %s", o->name, o->arg);
		return 0;
	}
	return cli_unknown_option(c, word, len, err);
}

static const struct cli_option *cli_find_letter(const struct cli_command *c, char letter,
						size_t *ret_index)
{
	for (size_t i = 0; i < c->n_options; i++)
		if (c->options[i].letter == letter) {
			*ret_index = i;
			return &c->options[i];
		}
	return NULL;
}

static int cli_take_short(struct cli_walk *w, const char *letters, struct err *err)
{
	for (const char *p = letters; *p; p++) {
		const struct cli_option *o;
		size_t i;

		if (*p == 'h') {
			w->args->help = true;
			continue;
		}
		o = cli_find_letter(w->command, *p, &i);
		if (!o)
			return err_set(err, -EINVAL, "%s: unknown option -%c", w->command->name,
				       isprint((unsigned char)*p) ? *p : '?');
		if (!o->arg) {
			w->args->values[i] = "";
			continue;
		}
		if (p[1])
			w->args->values[i] = p + 1;
		else if (w->at < w->argc)
			w->args->values[i] = w->argv[w->at++];
		else
			return err_set(err, -EINVAL, "-%c needs a value: %s", *p, o->arg);
		return 0;
	}
	return 0;
}

static int cli_take_operand(struct cli_walk *w, const char *word, struct err *err)
{
	size_t max = MIN(w->command->max_operands, (size_t)CLI_MAX_OPERANDS);

	if (w->args->n_operands >= max)
		return err_set(err, -EINVAL, "%s: unexpected argument '%s'", w->command->name,
			       word);
	w->args->operands[w->args->n_operands++] = word;
	return 0;
}

int cli_args_parse(const struct cli_command *command, int argc, char *const *argv,
		   struct cli_args *ret_args, struct err *err)
{
	struct cli_args args = {};
	struct cli_walk w = {.command = command, .argc = argc, .argv = argv, .args = &args};
	bool only_operands = false;

	while (w.at < argc) {
		const char *word = argv[w.at++];
		int r = 0;

		if (only_operands || word[0] != '-' || !word[1])
			r = cli_take_operand(&w, word, err);
		else if (strcmp(word, "--") == 0)
			only_operands = true;
		else if (word[1] == '-')
			r = cli_take_long(&w, word + 2, err);
		else
			r = cli_take_short(&w, word + 1, err);
		if (r < 0)
			return r;
	}
	if (!args.help && args.n_operands < command->min_operands)
		return err_set(err, -EINVAL, "%s: missing argument; expected %s", command->name,
			       command->operands);
	*ret_args = args;
	return 0;
}

/* Appends the text from this column on, wrapped before CLI_USAGE_WIDTH. */
static int cli_usage_wrap(const char *text, size_t column, struct buf *out)
{
	size_t at = column;
	int r = 0;

	while (*text && r == 0) {
		size_t len = strcspn(text, " ");

		if (at > column && at + 1 + len > CLI_USAGE_WIDTH) {
			r = buf_printf(out, "\n%*s", (int)column, "");
			at = column;
		} else if (at > column) {
			r = buf_append_byte(out, ' ');
			at++;
		}
		if (r == 0)
			r = buf_append(out, text, len);
		at += len;
		text += len + (text[len] == ' ');
	}
	return r < 0 ? r : buf_append_byte(out, '\n');
}

static int cli_usage_option(const struct cli_option *o, struct buf *out)
{
	char left[64];
	char letter[8] = "    ";
	int r;

	if (o->letter)
		(void)snprintf(letter, sizeof(letter), "-%c, ", o->letter);
	(void)snprintf(left, sizeof(left), "  %s--%s%s%s", letter, o->name, o->arg ? " " : "",
		       o->arg ? o->arg : "");
	if (strlen(left) < CLI_USAGE_COLUMN)
		r = buf_printf(out, "%-*s", CLI_USAGE_COLUMN, left);
	else
		r = buf_printf(out, "%s\n%*s", left, CLI_USAGE_COLUMN, "");
	return r < 0 ? r : cli_usage_wrap(o->help, CLI_USAGE_COLUMN, out);
}

int cli_usage(const struct cli_command *command, struct buf *out)
{
	static const struct cli_option help = {
		.name = "help", .letter = 'h', .help = "show this help"};
	int r;

	r = buf_printf(out, "Usage: sonde %s%s%s%s\n\n%s.\n\nOptions:\n", command->name,
		       command->n_options ? " [OPTIONS]" : "", *command->operands ? " " : "",
		       command->operands, command->summary);
	for (size_t i = 0; r == 0 && i < command->n_options; i++)
		r = cli_usage_option(&command->options[i], out);
	if (r == 0)
		r = cli_usage_option(&help, out);
	if (r == 0 && command->notes)
		r = buf_printf(out, "\n%s", command->notes);
	return r;
}

int cli_parse_number(const char *name, const char *value, uint64_t max, uint64_t *ret_number,
		     struct err *err)
{
	unsigned long long n = 0;
	char *end = NULL;

	errno = 0;
	if (isdigit((unsigned char)value[0]))
		n = strtoull(value, &end, 10);
	if (!end || *end || errno || n == 0 || n > max)
		return err_set(err, -EINVAL, "%s must be a whole number from 1 to %llu, not '%s'",
			       name, (unsigned long long)max, value);
	*ret_number = n;
	return 0;
}

int cli_parse_duration(const char *name, const char *value, uint64_t *ret_ns, struct err *err)
{
	uint64_t ns;

	if (clock_parse_duration(value, &ns) < 0 || ns == 0)
		return err_set(err, -EINVAL,
			       "%s must be a duration such as 500ms, 30s, 5m or 1h, not '%s'", name,
			       value);
	*ret_ns = ns;
	return 0;
}
