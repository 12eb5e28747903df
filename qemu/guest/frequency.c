// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Frequency over time while a workload ran: what our cpufreq module recorded of it. Before the workload one small file
 * is read, to know later how many changes the ring has lost; all else is read when the workload is over.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "kpci.h"

#define DIR "/sys/kernel/debug/kpci_cpufreq"

/* 4096 entries of at most 53 characters, and a line for each policy. */
enum { TEXT = 262144 };

struct change {
	int64_t ns;
	int cpu;
	int64_t from, to;
};

static char text[TEXT];
static int64_t at_start;
static bool there;

void frequency_touch(void)
{
	memset(text, 0, sizeof(text));
}

void frequency_start(void)
{
	char count[32];

	there = read_line(DIR "/recorded", count, sizeof(count));
	at_start = there ? strtoll(count, NULL, 10) : 0;
}

void frequency_stop(void)
{
	if (there)
		there = read_file(DIR "/changes", text, sizeof(text)) > 0;
}

/* The line after `p` that starts with `word` and a space, behind both; NULL after the last. */
static const char *next_line(const char *p, const char *word)
{
	size_t len = strlen(word);

	while (p && *p) {
		if (!strncmp(p, word, len) && p[len] == ' ')
			return p + len + 1;
		p = strchr(p, '\n');
		p = p ? p + 1 : NULL;
	}
	return NULL;
}

static struct change change_of(const char *p)
{
	struct change c;
	char *end;

	c.ns = strtoll(p, &end, 10);
	c.cpu = strtol(end, &end, 10);
	c.from = strtoll(end, &end, 10);
	c.to = strtoll(end, &end, 10);
	return c;
}

/* What the policy ran at when the workload started: what its first change since then left, or else what it has now. */
static int64_t khz_at(int64_t start, int cpu, int64_t now)
{
	const char *p;

	for (p = next_line(text, "change"); p; p = next_line(p, "change")) {
		struct change c = change_of(p);

		if (c.cpu == cpu && c.ns >= start)
			return c.from;
	}
	return now;
}

static void emit_policy(const char *line, int64_t start, int64_t end)
{
	char *rest, key[32];
	int cpu = strtol(line, &rest, 10);
	const char *p;

	snprintf(key, sizeof(key), "policy%d", cpu);
	json_key(key);
	json_open('{');
	json_int("khz", khz_at(start, cpu, strtoll(rest, NULL, 10)));
	json_key("changes");
	json_open('[');
	for (p = next_line(text, "change"); p; p = next_line(p, "change")) {
		struct change c = change_of(p);

		if (c.cpu != cpu || c.ns < start || c.ns > end)
			continue;
		json_open('[');
		json_int(NULL, c.ns - start);
		json_int(NULL, c.to);
		json_close(']');
	}
	json_close(']');
	json_close('}');
}

/* `start`, `end`: of the workload, CLOCK_MONOTONIC. Nothing where the module, or debugfs, is not there. */
void frequency_emit(int64_t start, int64_t end)
{
	const char *first = next_line(text, "change"), *p = next_line(text, "recorded");
	int64_t kept = 0, lost, oldest = first ? change_of(first).ns : start;

	if (!there || !p)
		return;
	lost = strtoll(p, NULL, 10) - at_start;
	for (p = first; p; p = next_line(p, "change"))
		kept++;
	lost = lost > kept ? lost - kept : 0;
	json_key("frequency");
	json_open('{');
	json_int("span_ns", end - start);
	json_int("lost", lost);
	/* Before the oldest entry that was kept nothing is known. */
	json_int("known_from_ns", lost && oldest > start ? oldest - start : 0);
	json_key("policies");
	json_open('{');
	for (p = next_line(text, "policy"); p; p = next_line(p, "policy"))
		emit_policy(p, start, end);
	json_close('}');
	json_close('}');
}
