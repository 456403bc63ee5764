/*
 * src/store/totals/about.h: what a service is, by day: its runtime, who starts it, and whether any
 * of its processes lived for a minute. The labels of the process that came last say so.
 *
 *   varint  1 if a process lived for a minute or longer
 *   text    runtime: varint length, bytes
 *   text    parent
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/buf.h"
#include "base/err.h"
#include "base/view.h"

struct store_dict;
struct store_writer;
struct store_writer_tools;

#define STORE_ABOUT_RUNTIME "process.runtime.description"
#define STORE_ABOUT_PARENT "sonde.parent"
#define STORE_ABOUT_LIVED_MS 60000

/* "": not known. */
struct store_about {
	bool lived;
	bool changed; /* since it was written */
	char runtime[64];
	char parent[256];
};

int store_about_encode(const struct store_about *about, struct buf *out);
int store_about_decode(struct view block, struct store_about *ret);

/* A process of the service has come: its labels, as on disk. */
void store_about_learn(struct store_about *about, struct view labels);
/* It was collected. */
int store_about_see(struct store_writer *w, struct store_dict *d, uint32_t labelset, int64_t ms,
		    struct err *err);
int store_about_load(struct store_writer *w, struct err *err);
/* Within the transaction, before it ends. */
int store_about_flush(struct store_writer *w, struct store_writer_tools *t, struct err *err);
