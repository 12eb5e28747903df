// SPDX-License-Identifier: GPL-2.0-or-later
/* What the booted guest really is, for the host to hold against what it asked for. */
#define _GNU_SOURCE
#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/utsname.h>
#include <time.h>
#include <unistd.h>

#include "kpci.h"

#define CPU_DIR "/sys/devices/system/cpu"
#define SCHED_DEBUG "/sys/kernel/debug/sched"
#define SWITCH_COST "/sys/module/kpci_switchcost/parameters"

static char buf[65536];

/* The words of a text as an array. */
static void emit_words(const char *key, char *text)
{
	char *save, *word;

	json_key(key);
	json_open('[');
	for (word = strtok_r(text, " \t\n", &save); word; word = strtok_r(NULL, " \t\n", &save))
		json_str(NULL, word);
	json_close(']');
}

static void emit_int_file(const char *key, const char *path)
{
	char text[64];

	if (read_line(path, text, sizeof(text)))
		json_int(key, strtoll(text, NULL, 0));
	else
		json_str(key, NULL);
}

static void emit_cpu(int cpu)
{
	char path[256];

	json_open('{');
	json_int("cpu", cpu);
	snprintf(path, sizeof(path), CPU_DIR "/cpu%d/cpu_capacity", cpu);
	emit_int_file("capacity", path);
	snprintf(path, sizeof(path), CPU_DIR "/cpu%d/topology/cluster_cpus_list", cpu);
	json_file("cluster_cpus", path);
	snprintf(path, sizeof(path), CPU_DIR "/cpu%d/topology/core_siblings_list", cpu);
	json_file("package_cpus", path);
	snprintf(path, sizeof(path), CPU_DIR "/cpu%d/topology/thread_siblings_list", cpu);
	json_file("core_cpus", path);
	snprintf(path, sizeof(path), CPU_DIR "/cpu%d/topology/physical_package_id", cpu);
	emit_int_file("package", path);
	snprintf(path, sizeof(path), CPU_DIR "/cpu%d/topology/cluster_id", cpu);
	emit_int_file("cluster", path);
	snprintf(path, sizeof(path), CPU_DIR "/cpu%d/topology/core_id", cpu);
	emit_int_file("core", path);
	json_close('}');
}

static void emit_cpufreq(int cpus)
{
	char dir[128], path[256];
	int n;

	json_key("cpufreq");
	json_open('[');
	for (n = 0; n < cpus; n++) {
		snprintf(dir, sizeof(dir), CPU_DIR "/cpufreq/policy%d", n);
		if (access(dir, F_OK))
			continue;
		json_open('{');
		json_int("policy", n);
		snprintf(path, sizeof(path), "%s/related_cpus", dir);
		json_file("related_cpus", path);
		snprintf(path, sizeof(path), "%s/scaling_governor", dir);
		json_file("governor", path);
		snprintf(path, sizeof(path), "%s/scaling_driver", dir);
		json_file("driver", path);
		snprintf(path, sizeof(path), "%s/cpuinfo_min_freq", dir);
		emit_int_file("min_khz", path);
		snprintf(path, sizeof(path), "%s/cpuinfo_max_freq", dir);
		emit_int_file("max_khz", path);
		snprintf(path, sizeof(path), "%s/scaling_available_frequencies", dir);
		read_line(path, buf, sizeof(buf));
		emit_words("frequencies", buf);
		json_close('}');
	}
	json_close(']');
}

/* Only where our module is loaded: what it was told, and what it measured. */
static void emit_switch_cost(void)
{
	static const char *const names[] = { "cost_ns", "event_ns", "interrupt_ns", "loop_ps" };
	char path[256];
	unsigned int i;

	if (access(SWITCH_COST, F_OK))
		return;
	json_key("switch_cost");
	json_open('{');
	for (i = 0; i < sizeof(names) / sizeof(*names); i++) {
		snprintf(path, sizeof(path), SWITCH_COST "/%s", names[i]);
		emit_int_file(names[i], path);
	}
	json_close('}');
}

/* Debugfs since 5.13, procfs before; newer kernels fill the directory only while `verbose` is on. */
static void emit_domains(int cpus)
{
	const char *root = access(SCHED_DEBUG, F_OK) ? "/proc/sys/kernel/sched_domain" : SCHED_DEBUG "/domains";
	char dir[128], path[256];
	bool verbose = access(SCHED_DEBUG "/domains/cpu0", F_OK) && !write_file(SCHED_DEBUG "/verbose", "Y");
	int cpu, level;

	json_key("sched_domains");
	json_open('[');
	for (cpu = 0; cpu < cpus; cpu++) {
		for (level = 0;; level++) {
			snprintf(dir, sizeof(dir), "%s/cpu%d/domain%d", root, cpu, level);
			if (access(dir, F_OK))
				break;
			json_open('{');
			json_int("cpu", cpu);
			json_int("level", level);
			snprintf(path, sizeof(path), "%s/name", dir);
			json_file("name", path);
			snprintf(path, sizeof(path), "%s/flags", dir);
			read_line(path, buf, sizeof(buf));
			emit_words("flags", buf);
			json_close('}');
		}
	}
	json_close(']');
	if (verbose)
		write_file(SCHED_DEBUG "/verbose", "N");
}

static void emit_sysctls(const char *dir, const char *prefix)
{
	struct dirent **list;
	int n = scandir(dir, &list, NULL, alphasort), i;

	for (i = 0; i < n; i++) {
		const char *name = list[i]->d_name;
		char path[1024], rel[512];

		snprintf(path, sizeof(path), "%.500s/%.500s", dir, name);
		snprintf(rel, sizeof(rel), "%.240s%.240s", prefix, name);
		if (list[i]->d_type == DT_REG) {
			json_str(NULL, rel);
		} else if (name[0] != '.' && strcmp(name, "sched_domain")) {
			strcat(rel, "/");
			emit_sysctls(path, rel);
		}
		free(list[i]);
	}
	if (n >= 0)
		free(list);
}

static void emit_modules(void)
{
	char *line, *save;

	read_file("/proc/modules", buf, sizeof(buf));
	json_key("modules");
	json_open('[');
	for (line = strtok_r(buf, "\n", &save); line; line = strtok_r(NULL, "\n", &save)) {
		line[strcspn(line, " ")] = '\0';
		json_str(NULL, line);
	}
	json_close(']');
}

void emit_facts(void)
{
	int cpus = sysconf(_SC_NPROCESSORS_ONLN), cpu;
	struct utsname uts;
	struct timespec res;
	char *mem;

	uname(&uts);
	json_begin("facts");
	json_str("release", uts.release);
	json_str("version", uts.version);
	json_str("machine", uts.machine);
	json_int("cpus", cpus);
	json_key("cpu");
	json_open('[');
	for (cpu = 0; cpu < cpus; cpu++)
		emit_cpu(cpu);
	json_close(']');
	emit_cpufreq(cpus);
	emit_switch_cost();
	if (!read_line(SCHED_DEBUG "/features", buf, sizeof(buf)))
		read_line("/sys/kernel/debug/sched_features", buf, sizeof(buf));
	emit_words("features", buf);
	emit_domains(cpus);
	json_file("cmdline", "/proc/cmdline");
	json_file("clocksource", "/sys/devices/system/clocksource/clocksource0/current_clocksource");
	json_file("clockevent", "/sys/devices/system/clockevents/clockevent0/current_device");
	/* 1 with high-resolution timers, a tick's length without. */
	clock_getres(CLOCK_MONOTONIC, &res);
	json_int("timer_resolution_ns", res.tv_sec * 1000000000LL + res.tv_nsec);
	read_file("/proc/meminfo", buf, sizeof(buf));
	mem = strstr(buf, "MemTotal:");
	json_int("mem_kb", mem ? strtoll(mem + 9, NULL, 10) : 0);
	json_key("sysctls");
	json_open('[');
	emit_sysctls("/proc/sys/kernel", "");
	json_close(']');
	emit_modules();
	json_end();
}
