// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * The result channel: a QEMU pci-serial port of its own, one JSON object a line.
 * An object reaches the wire whole, and is on it when json_end() returns, so that no
 * transmit interrupt of ours falls into a measurement.
 */
#define _GNU_SOURCE
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <termios.h>
#include <unistd.h>

#include "kpci.h"

static int channel = -1;
static char out[16384];
static size_t out_len;
static bool need_comma;

/* Is /sys/class/tty/NAME a port of QEMU's pci-serial (1b36:0002)? */
static bool is_channel(const char *name)
{
	char link[PATH_MAX], dir[PATH_MAX], file[PATH_MAX + 16], id[16];
	char *slash;

	snprintf(link, sizeof(link), "/sys/class/tty/%s/device", name);
	if (!realpath(link, dir))
		return false;
	/* Since 6.5 a serial port's device lies below its PCI device: walk up. */
	while ((slash = strrchr(dir, '/')) && slash != dir) {
		snprintf(file, sizeof(file), "%s/vendor", dir);
		if (read_line(file, id, sizeof(id))) {
			if (strcmp(id, "0x1b36"))
				return false;
			snprintf(file, sizeof(file), "%s/device", dir);
			return read_line(file, id, sizeof(id)) && !strcmp(id, "0x0002");
		}
		*slash = '\0';
	}
	return false;
}

int json_open_channel(void)
{
	struct termios tio;
	char path[300] = "";
	struct dirent *d;
	DIR *dir = opendir("/sys/class/tty");

	if (!dir)
		return -errno;
	while (!*path && (d = readdir(dir)))
		if (!strncmp(d->d_name, "ttyS", 4) && is_channel(d->d_name))
			snprintf(path, sizeof(path), "/dev/%s", d->d_name);
	closedir(dir);
	if (!*path)
		return -ENODEV;
	channel = open(path, O_WRONLY | O_NOCTTY | O_CLOEXEC);
	if (channel < 0)
		return -errno;
	if (tcgetattr(channel, &tio))
		return -errno;
	cfmakeraw(&tio);
	tio.c_cflag |= CLOCAL;
	tio.c_cflag &= ~CRTSCTS;
	cfsetspeed(&tio, B115200);
	return tcsetattr(channel, TCSANOW, &tio) ? -errno : 0;
}

static void flush(void)
{
	size_t done = 0;

	while (channel >= 0 && done < out_len) {
		ssize_t n = write(channel, out + done, out_len - done);

		if (n < 0 && errno != EINTR)
			break;
		if (n > 0)
			done += n;
	}
	out_len = 0;
}

static void put(char c)
{
	if (out_len == sizeof(out))
		flush();
	out[out_len++] = c;
}

static void puts_raw(const char *s)
{
	while (*s)
		put(*s++);
}

static void comma(void)
{
	if (need_comma)
		put(',');
	need_comma = true;
}

void json_text(const char *text, size_t len)
{
	static const char hex[] = "0123456789abcdef";
	size_t i;

	comma();
	put('"');
	for (i = 0; i < len; i++) {
		unsigned char c = text[i];

		if (c == '"' || c == '\\') {
			put('\\');
			put(c);
		} else if (c == '\n') {
			puts_raw("\\n");
		} else if (c < 0x20 || c >= 0x7f) {
			puts_raw("\\u00");
			put(hex[c >> 4]);
			put(hex[c & 15]);
		} else {
			put(c);
		}
	}
	put('"');
}

void json_key(const char *key)
{
	if (!key)
		return;
	json_text(key, strlen(key));
	put(':');
	need_comma = false;
}

void json_open(char bracket)
{
	comma();
	put(bracket);
	need_comma = false;
}

void json_close(char bracket)
{
	put(bracket);
	need_comma = true;
}

/* A NULL key writes an element of an array; a NULL text is null. */
void json_str(const char *key, const char *text)
{
	json_key(key);
	if (text) {
		json_text(text, strlen(text));
	} else {
		comma();
		puts_raw("null");
	}
}

void json_int(const char *key, int64_t value)
{
	char buf[32];

	json_key(key);
	comma();
	snprintf(buf, sizeof(buf), "%lld", (long long)value);
	puts_raw(buf);
}

void json_bool(const char *key, bool value)
{
	json_key(key);
	comma();
	puts_raw(value ? "true" : "false");
}

/* The file's text without the white space at its end, or null. */
void json_file(const char *key, const char *path)
{
	static char buf[65536];

	json_str(key, read_line(path, buf, sizeof(buf)) ? buf : NULL);
}

void json_argv(char **argv)
{
	json_key("argv");
	json_open('[');
	while (*argv)
		json_str(NULL, *argv++);
	json_close(']');
}

void json_begin(const char *event)
{
	need_comma = false;
	json_open('{');
	json_str("event", event);
}

void json_end(void)
{
	put('}');
	put('\n');
	flush();
	if (channel >= 0)
		tcdrain(channel);
}
