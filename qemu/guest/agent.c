// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * PID 1 of a kpatch-ci guest: sets the system up, tells the host what it is, stops the machine for
 * the snapshot, then does the job that the resuming host brings along. See README.md.
 */
#define _GNU_SOURCE
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/reboot.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "kpci.h"

#define PCI_DIR "/sys/bus/pci/devices"
#define CLOCKSOURCE "/sys/devices/system/clocksource/clocksource0/current_clocksource"
#define MODULES "/lib/kpci/modules"

enum { PVPANIC_PANICKED = 1 };

static volatile uint8_t *pvpanic;

/* Tells QEMU of a guest panic: -action panic= says whether that pauses or ends the machine. */
void stop_guest(void)
{
	if (pvpanic)
		*pvpanic = PVPANIC_PANICKED;
}

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
	stop_guest();
	/* QEMU was told to ignore panics: with -no-reboot this ends it on every machine. */
	reboot(RB_AUTOBOOT);
	for (;;)
		pause();
}

/* Before the snapshot a pvpanic write would look like a boot that succeeded. */
static void must(int err, const char *what)
{
	if (!err)
		return;
	pvpanic = NULL;
	finish(false, "%s: %s", what, strerror(-err));
}

static bool has_id(const char *dir, const char *file, const char *id)
{
	char path[512], text[16];

	snprintf(path, sizeof(path), PCI_DIR "/%s/%s", dir, file);
	return read_line(path, text, sizeof(text)) && !strcmp(text, id);
}

static int open_pvpanic(void)
{
	char path[512] = "";
	struct dirent *d;
	DIR *dir = opendir(PCI_DIR);
	void *bar;
	int fd;

	if (!dir)
		return -errno;
	while (!*path && (d = readdir(dir))) {
		if (!has_id(d->d_name, "vendor", "0x1b36") || !has_id(d->d_name, "device", "0x0011"))
			continue;
		snprintf(path, sizeof(path), PCI_DIR "/%s/enable", d->d_name);
		write_file(path, "1");
		snprintf(path, sizeof(path), PCI_DIR "/%s/resource0", d->d_name);
	}
	closedir(dir);
	fd = *path ? open(path, O_RDWR | O_CLOEXEC | O_SYNC) : -1;
	if (fd < 0)
		return *path ? -errno : -ENODEV;
	bar = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	close(fd);
	if (bar == MAP_FAILED)
		return -errno;
	pvpanic = bar;
	return 0;
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
	must(open_pvpanic(), "pvpanic-pci");
	must(mix_boot_seed(), "boot seed");
	load_modules();
	counters_open();
	settle();
	emit_facts();
	console("ready");
	json_begin("ready");
	json_int("uptime_ns", now_ns());
	json_end();
	stop_guest();
	do_job();
	finish(true, "job done");
}
