// SPDX-License-Identifier: GPL-2.0-or-later
/* The two PCI devices that let the guest stop its machine; driven from here, no kernel driver needed. */
#define _GNU_SOURCE
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#include "kpci.h"

#define PCI_DIR "/sys/bus/pci/devices"

/* pvpanic-pci: one byte, an event bit. */
enum { PVPANIC_PANICKED = 1 };

/* i6300esb, the Intel 6300ESB watchdog: see its data sheet, section 16. */
enum {
	ESB_CONFIG = 0x60,		/* configuration space, 16 bits */
	ESB_LOCK = 0x68,		/* configuration space, 8 bits */
	ESB_TIMER1 = 0x00,		/* BAR 0 */
	ESB_TIMER2 = 0x04,
	ESB_RELOAD = 0x0c,
	ESB_NO_INTERRUPT = 3,
	ESB_ENABLE = 2,
	STAGE1_MS = 1,
	STAGE2_MS = 20,
};

static volatile uint8_t *pvpanic;
static volatile uint8_t *watchdog;
static char watchdog_config[300];

static bool has_id(const char *dir, const char *file, const char *id)
{
	char path[512], text[16];

	snprintf(path, sizeof(path), PCI_DIR "/%s/%s", dir, file);
	return read_line(path, text, sizeof(text)) && !strcmp(text, id);
}

/* Maps BAR 0 of the first device of that kind; its directory's name goes to `slot`. */
static volatile uint8_t *map_bar(const char *vendor, const char *device, char *slot, size_t size)
{
	char path[512], resource[1024];
	struct dirent *d;
	DIR *dir = opendir(PCI_DIR);
	uint8_t *page;
	int fd;

	*slot = '\0';
	while (dir && !*slot && (d = readdir(dir)))
		if (has_id(d->d_name, "vendor", vendor) && has_id(d->d_name, "device", device))
			snprintf(slot, size, "%s", d->d_name);
	if (dir)
		closedir(dir);
	if (!*slot)
		return NULL;
	snprintf(path, sizeof(path), PCI_DIR "/%s/enable", slot);
	write_file(path, "1");
	snprintf(path, sizeof(path), PCI_DIR "/%s/resource0", slot);
	fd = open(path, O_RDWR | O_CLOEXEC | O_SYNC);
	if (fd < 0)
		return NULL;
	page = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	close(fd);
	if (page == MAP_FAILED)
		return NULL;
	/* BARs smaller than a page share one: the mapping starts at the page. */
	snprintf(path, sizeof(path), PCI_DIR "/%s/resource", slot);
	read_line(path, resource, sizeof(resource));
	return page + strtoull(resource, NULL, 16) % 4096;
}

int pci_open(void)
{
	char slot[256];

	pvpanic = map_bar("0x1b36", "0x0011", slot, sizeof(slot));
	watchdog = map_bar("0x8086", "0x25ab", slot, sizeof(slot));
	snprintf(watchdog_config, sizeof(watchdog_config), PCI_DIR "/%s/config", slot);
	return pvpanic && watchdog ? 0 : -ENODEV;
}

/* Tells QEMU of a panic; with -action panic=shutdown that ends the machine. */
void end_guest(void)
{
	if (pvpanic)
		*pvpanic = PVPANIC_PANICKED;
}

static void set_timer(int reg, uint32_t value)
{
	watchdog[ESB_RELOAD] = 0x80;
	watchdog[ESB_RELOAD] = 0x86;
	*(volatile uint32_t *)(watchdog + reg) = value;
}

/*
 * Lets the machine be stopped (-action watchdog=pause) in the middle of an idle sleep.
 *
 * Not by a panic: a vCPU that asks QEMU to stop only leaves a note to QEMU's main loop. Until the
 * main loop reads it the clock may or may not jump to the next timer: two boots of one seed then
 * stop at different virtual times. A device timer that expires while every CPU idles is run by the
 * main loop itself, at its exact virtual time, and the note is read before anything else moves.
 */
int pause_guest(void)
{
	const struct timespec past = { .tv_nsec = 100000000 };
	const uint16_t config = ESB_NO_INTERRUPT;
	const uint8_t enable = ESB_ENABLE;
	int fd = open(watchdog_config, O_RDWR | O_CLOEXEC);

	if (fd < 0)
		return -errno;
	set_timer(ESB_TIMER1, STAGE1_MS);
	set_timer(ESB_TIMER2, STAGE2_MS);
	if (pwrite(fd, &config, sizeof(config), ESB_CONFIG) < 0 || pwrite(fd, &enable, sizeof(enable), ESB_LOCK) < 0)
		return -errno;
	close(fd);
	nanosleep(&past, NULL);
	return 0;
}
