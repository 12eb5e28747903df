// SPDX-License-Identifier: GPL-2.0-or-later
/* Small file and clock helpers. Errors come back as -errno. */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "kpci.h"

/* Reads a whole file (procfs hands out pages) and terminates it; -errno on failure. */
ssize_t read_file(const char *path, char *buf, size_t size)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	size_t len = 0;
	ssize_t n = 0;

	buf[0] = '\0';
	if (fd < 0)
		return -errno;
	while (len < size - 1 && (n = read(fd, buf + len, size - 1 - len)) > 0)
		len += n;
	if (n < 0)
		n = -errno;
	close(fd);
	buf[len] = '\0';
	return n < 0 ? n : (ssize_t)len;
}

/* As read_file(), without the white space at the end. */
bool read_line(const char *path, char *buf, size_t size)
{
	ssize_t n = read_file(path, buf, size);

	while (n > 0 && strchr(" \t\n", buf[n - 1]))
		buf[--n] = '\0';
	return n >= 0;
}

int write_file(const char *path, const char *value)
{
	int fd = open(path, O_WRONLY | O_CLOEXEC);
	int err = 0;
	ssize_t n;

	if (fd < 0)
		return -errno;
	n = write(fd, value, strlen(value));
	if (n < 0)
		err = -errno;
	else if ((size_t)n != strlen(value))
		err = -EIO;
	close(fd);
	return err;
}

int make_dirs(const char *path)
{
	char buf[4096];
	char *p;

	if (snprintf(buf, sizeof(buf), "%s", path) >= (int)sizeof(buf))
		return -ENAMETOOLONG;
	for (p = buf + 1; *p; p++) {
		if (*p != '/')
			continue;
		*p = '\0';
		if (mkdir(buf, 0755) && errno != EEXIST)
			return -errno;
		*p = '/';
	}
	if (mkdir(buf, 0755) && errno != EEXIST)
		return -errno;
	return 0;
}

int make_mount(const char *type, const char *dev, const char *dir, const char *opts)
{
	int err = make_dirs(dir);

	if (err)
		return err;
	return mount(dev, dir, type, 0, opts) ? -errno : 0;
}

int64_t now_ns(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return ts.tv_sec * 1000000000LL + ts.tv_nsec;
}

/* One line for people. Never used between a job's first directive and its end unless it fails. */
void console(const char *fmt, ...)
{
	char buf[1024];
	va_list ap;
	int n;

	va_start(ap, fmt);
	n = vsnprintf(buf, sizeof(buf) - 1, fmt, ap);
	va_end(ap);
	if (n < 0)
		return;
	if (n > (int)sizeof(buf) - 2)
		n = sizeof(buf) - 2;
	buf[n++] = '\n';
	if (write(STDOUT_FILENO, "kpatch-ci: ", 11) < 0 || write(STDOUT_FILENO, buf, n) < 0)
		return;
}
