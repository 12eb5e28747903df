// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * What the whole system did while a workload ran. Each snapshot is a handful of reads into static
 * buffers; the texts are parsed when the run is over.
 */
#define _GNU_SOURCE
#include <fcntl.h>
#include <inttypes.h>
#include <linux/perf_event.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "kpci.h"

enum { MAX_CPUS = 64, TEXT = 131072, MAX_STATES = 64 };

struct snapshot {
	int64_t ns;
	uint64_t perf[2];		/* context switches, migrations */
	char schedstat[TEXT];
	char stat[TEXT];
	char freq[MAX_CPUS][2048];
};

static struct snapshot before, after;
static char interrupts[TEXT];
static uint64_t end_hash;
static int cpus;
static int perf_fd[MAX_CPUS][2];

static int perf_open(uint64_t config, int cpu)
{
	struct perf_event_attr attr = {
		.type = PERF_TYPE_SOFTWARE,
		.size = sizeof(attr),
		.config = config,
	};

	return syscall(SYS_perf_event_open, &attr, -1, cpu, -1, PERF_FLAG_FD_CLOEXEC);
}

/* Before the snapshot: creating events costs more than counting. */
void counters_open(void)
{
	int cpu;

	/* Without it the wakeup counts of /proc/schedstat stand still. */
	write_file("/proc/sys/kernel/sched_schedstats", "1");
	cpus = sysconf(_SC_NPROCESSORS_ONLN);
	if (cpus > MAX_CPUS)
		cpus = MAX_CPUS;
	for (cpu = 0; cpu < cpus; cpu++) {
		perf_fd[cpu][0] = perf_open(PERF_COUNT_SW_CONTEXT_SWITCHES, cpu);
		perf_fd[cpu][1] = perf_open(PERF_COUNT_SW_CPU_MIGRATIONS, cpu);
	}
	/* Touch the pages now, not between two measurements. */
	memset(&before, 0, sizeof(before));
	memset(&after, 0, sizeof(after));
	memset(interrupts, 0, sizeof(interrupts));
	frequency_touch();
}

static void read_perf(struct snapshot *s)
{
	int cpu, i;

	s->perf[0] = s->perf[1] = 0;
	for (cpu = 0; cpu < cpus; cpu++) {
		for (i = 0; i < 2; i++) {
			uint64_t count;

			if (perf_fd[cpu][i] >= 0 && read(perf_fd[cpu][i], &count, sizeof(count)) == sizeof(count))
				s->perf[i] += count;
		}
	}
}

static void read_texts(struct snapshot *s)
{
	char path[128];
	int cpu;

	read_file("/proc/schedstat", s->schedstat, TEXT);
	read_file("/proc/stat", s->stat, TEXT);
	for (cpu = 0; cpu < cpus; cpu++) {
		snprintf(path, sizeof(path), "/sys/devices/system/cpu/cpufreq/policy%d/stats/time_in_state", cpu);
		read_file(path, s->freq[cpu], sizeof(s->freq[cpu]));
	}
}

void counters_start(void)
{
	frequency_start();
	read_texts(&before);
	before.ns = now_ns();
	read_perf(&before);
}

/* FNV-1a, 64 bits. */
static uint64_t hash(uint64_t h, const char *s)
{
	for (; *s; s++)
		h = (h ^ (unsigned char)*s) * 0x100000001b3ULL;
	return h;
}

void counters_stop(void)
{
	read_perf(&after);
	after.ns = now_ns();
	read_texts(&after);
	read_file("/proc/interrupts", interrupts, TEXT);
	frequency_stop();
	end_hash = hash(hash(hash(0xcbf29ce484222325ULL, after.schedstat), after.stat), interrupts);
}

/* The first number of /proc/stat's line `name`. */
static int64_t stat_value(const char *text, const char *name)
{
	const char *p = strstr(text, name);

	return p ? strtoll(p + strlen(name), NULL, 10) : 0;
}

static void emit_freq(int cpu)
{
	const char *a = before.freq[cpu], *b = after.freq[cpu];
	char key[32];

	snprintf(key, sizeof(key), "policy%d", cpu);
	json_key(key);
	json_open('{');
	while (*a && *b) {
		char *end_a, *end_b;
		long long khz = strtoll(a, &end_a, 10), ticks = strtoll(end_a, &end_a, 10);

		if (khz != strtoll(b, &end_b, 10) || end_a == a)
			break;
		snprintf(key, sizeof(key), "%lld", khz);
		json_int(key, strtoll(end_b, &end_b, 10) - ticks);
		a = end_a + strspn(end_a, "\n");
		b = end_b + strspn(end_b, "\n");
	}
	json_close('}');
}

/* Fields of /proc/schedstat's cpu lines: ttwu_count, ttwu_local, rq_cpu_time and run_delay (ns). */
enum { TTWU_COUNT = 5, TTWU_LOCAL = 6, RQ_CPU_TIME = 7, RUN_DELAY = 8 };

static int64_t cpu_delta(int cpu, int field)
{
	return schedstat_cpu(after.schedstat, cpu, field) - schedstat_cpu(before.schedstat, cpu, field);
}

/* How long tasks ran on each CPU, and waited for it. A task's time is counted when it leaves the CPU. */
static void emit_cpu_times(void)
{
	char key[32];
	int cpu;

	json_key("cpu_times");
	json_open('{');
	for (cpu = 0; cpu < cpus; cpu++) {
		snprintf(key, sizeof(key), "cpu%d", cpu);
		json_key(key);
		json_open('{');
		json_int("run_ns", cpu_delta(cpu, RQ_CPU_TIME));
		json_int("wait_ns", cpu_delta(cpu, RUN_DELAY));
		json_close('}');
	}
	json_close('}');
}

void counters_emit(void)
{
	static const struct { const char *key, *line; } stats[] = {
		{ "interrupts", "\nintr " },
		{ "softirqs", "\nsoftirq " },
		{ "forks", "\nprocesses " },
	};
	int64_t busy = schedstat_sum(after.schedstat, RQ_CPU_TIME) - schedstat_sum(before.schedstat, RQ_CPU_TIME);
	bool known = schedstat_known(before.schedstat) && schedstat_known(after.schedstat);
	char hex[32];
	size_t i;
	int cpu;

	json_begin("counters");
	json_key("delta");
	json_open('{');
	if (perf_fd[0][0] >= 0)
		json_int("context_switches", after.perf[0] - before.perf[0]);
	if (perf_fd[0][1] >= 0)
		json_int("migrations", after.perf[1] - before.perf[1]);
	if (known) {
		json_int("wakeups", schedstat_sum(after.schedstat, TTWU_COUNT) -
				    schedstat_sum(before.schedstat, TTWU_COUNT));
		json_int("wakeups_local", schedstat_sum(after.schedstat, TTWU_LOCAL) -
					  schedstat_sum(before.schedstat, TTWU_LOCAL));
	}
	for (i = 0; i < sizeof(stats) / sizeof(stats[0]); i++)
		json_int(stats[i].key, stat_value(after.stat, stats[i].line) - stat_value(before.stat, stats[i].line));
	/* /proc/stat's idle time moves in 10 ms; the run queues' own time moves in ns. */
	if (known)
		json_int("idle_ns", (after.ns - before.ns) * cpus - busy);
	json_close('}');
	json_key("time_in_state");
	json_open('{');
	for (cpu = 0; cpu < cpus; cpu++)
		if (*after.freq[cpu])
			emit_freq(cpu);
	json_close('}');
	if (known)
		emit_cpu_times();
	frequency_emit(before.ns, after.ns);
	snprintf(hex, sizeof(hex), "%016" PRIx64, end_hash);
	json_str("schedstat_sum", hex);
	json_end();
}
