// SPDX-License-Identifier: GPL-2.0-or-later
/* Reading /proc/schedstat, whose layout has a number of its own. */
#include <stdlib.h>
#include <string.h>

#include "kpci.h"

/*
 * 15 is in 5.10 and 6.1. 16 (6.12) and 17 changed the domain lines only (Documentation/scheduler/sched-stats.rst).
 * Of another one nothing is known, so nothing is said.
 */
enum { OLDEST = 15, NEWEST = 17 };

bool schedstat_known(const char *text)
{
	long version;

	if (strncmp(text, "version ", 8))
		return false;
	version = strtol(text + 8, NULL, 10);
	return version >= OLDEST && version <= NEWEST;
}

/* The next line of a CPU from `p` on, and the CPU's number; NULL after the last. */
static const char *next_cpu(const char *p, int *cpu)
{
	for (; p && *p; p += *p == '\n') {
		if (!strncmp(p, "cpu", 3) && p[3] >= '0' && p[3] <= '9') {
			*cpu = atoi(p + 3);
			return p;
		}
		p = strchr(p, '\n');
		if (!p)
			break;
	}
	return NULL;
}

static const char *after_line(const char *p)
{
	p = strchr(p, '\n');
	return p ? p + 1 : NULL;
}

/* Column `field` (from 1, after the name) of a line; 0 where it has fewer. */
static int64_t column(const char *line, int field)
{
	size_t len = strcspn(line, "\n");
	const char *p = line, *end = line + len;

	while (field-- && p)
		p = memchr(p + (p != line), ' ', end - p - (p != line));
	return p ? strtoll(p, NULL, 10) : 0;
}

int64_t schedstat_sum(const char *text, int field)
{
	const char *line;
	int64_t sum = 0;
	int cpu;

	for (line = next_cpu(text, &cpu); line; line = next_cpu(after_line(line), &cpu))
		sum += column(line, field);
	return sum;
}

int64_t schedstat_cpu(const char *text, int wanted, int field)
{
	const char *line;
	int cpu;

	for (line = next_cpu(text, &cpu); line; line = next_cpu(after_line(line), &cpu))
		if (cpu == wanted)
			return column(line, field);
	return 0;
}
