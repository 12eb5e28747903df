// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * PID 1 of a kpatch-ci guest: sets the system up, tells the host what it is, stops the machine for
 * the snapshot, then does the job that the resuming host brings along. See README.md.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/reboot.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "kpci.h"

#define CLOCKSOURCE "/sys/devices/system/clocksource/clocksource0/current_clocksource"
#define MODULES "/lib/kpci/modules"

static bool booted;

void finish(bool ok, const char *fmt, ...)
{
	char reason[512];
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(reason, sizeof(reason), fmt, ap);
	va_end(ap);
	if (!ok)
		console("failed: %s", reason);
	json_begin("end");
	json_str("status", ok ? "ok" : "failed");
	json_str("reason", reason);
	json_end();
	/* Before the snapshot an end by reboot tells a failed boot from one that stopped as it should. */
	if (booted)
		end_guest();
	/* Not reached, or QEMU was told to ignore panics: with -no-reboot this ends it on every machine. */
	reboot(RB_AUTOBOOT);
	for (;;)
		pause();
}

static void must(int err, const char *what)
{
	if (err)
		finish(false, "%s: %s", what, strerror(-err));
}

static void load_modules(void)
{
	static char text[8192];
	char *p = text, *line, what[600];

	read_file(MODULES, text, sizeof(text));
	while ((line = strsep(&p, "\n"))) {
		char *path = strsep(&line, " \t");
		int fd;

		if (!*path || *path == '#')
			continue;
		fd = open(path, O_RDONLY | O_CLOEXEC);
		snprintf(what, sizeof(what), "module %.500s", path);
		must(fd < 0 ? -errno : 0, what);
		must(syscall(SYS_finit_module, fd, line ? line : "", 0) ? -errno : 0, what);
		close(fd);
	}
}

static void mount_all(void)
{
	make_mount("proc", "proc", "/proc", NULL);
	make_mount("sysfs", "sysfs", "/sys", NULL);
	make_mount("devtmpfs", "dev", "/dev", NULL);
	make_mount("debugfs", "debugfs", "/sys/kernel/debug", NULL);
	make_mount("configfs", "configfs", "/sys/kernel/config", NULL);
	make_mount("tmpfs", "tmpfs", "/tmp", NULL);
}

static void open_console(void)
{
	int fd = open("/dev/console", O_RDWR | O_NOCTTY);

	if (fd < 0)
		return;
	dup2(fd, STDIN_FILENO);
	dup2(fd, STDOUT_FILENO);
	dup2(fd, STDERR_FILENO);
	if (fd > STDERR_FILENO)
		close(fd);
}

/*
 * Lets the kernel's own late work (probing, freeing) end before the snapshot, and on x86 the refined
 * TSC calibration, which otherwise switches the clock source a second later, within a replicate.
 */
static void settle(void)
{
	const struct timespec step = { .tv_nsec = 100000000 };
	char clock[64];
	int i;

	for (i = 0; i < 50; i++) {
		nanosleep(&step, NULL);
		read_line(CLOCKSOURCE, clock, sizeof(clock));
		if (strcmp(clock, "tsc-early"))
			break;
	}
}

int main(void)
{
	setenv("PATH", "/usr/sbin:/usr/bin:/sbin:/bin", 1);
	setenv("HOME", "/tmp", 1);
	setenv("LC_ALL", "C", 1);
	mount_all();
	open_console();
	must(json_open_channel(), "result channel (pci-serial)");
	must(pci_open(), "pvpanic-pci and i6300esb");
	must(mix_boot_seed(), "boot seed");
	load_modules();
	counters_open();
	settle();
	emit_facts();
	console("ready");
	json_begin("ready");
	json_int("uptime_ns", now_ns());
	json_end();
	must(pause_guest(), "pause");
	booted = true;
	do_job();
	finish(true, "job done");
}
