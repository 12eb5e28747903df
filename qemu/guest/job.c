// SPDX-License-Identifier: GPL-2.0-or-later
/* Reads the job from fw_cfg and carries it out, directive by directive. */
#define _GNU_SOURCE
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <fcntl.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "kpci.h"

#define JOB_FILE "/sys/firmware/qemu_fw_cfg/by_name/opt/kpatch-ci/job/raw"

enum { JOB_SIZE = 4096, MAX_FIELDS = 128 };

static int64_t timeout_ns = 60000000000LL;

static void do_seed(char **f)
{
	uint64_t seed = strtoull(f[1], NULL, 0);
	int err;

	json_begin("job");
	json_int("seed", seed);
	json_end();
	err = apply_run_seed(seed);
	if (err)
		finish(false, "seed %s: %s", f[1], strerror(-err));
}

static void do_timeout(char **f)
{
	timeout_ns = strtod(f[1], NULL) * 1e9;
}

static void do_write(char **f)
{
	int err = write_file(f[1], f[2]);

	if (err)
		finish(false, "write %s to %s: %s", f[2], f[1], strerror(-err));
}

static void do_mkdir(char **f)
{
	int err = make_dirs(f[1]);

	if (err)
		finish(false, "mkdir %s: %s", f[1], strerror(-err));
}

static void do_mount(char **f)
{
	int err = make_mount(f[1], f[2], f[3], f[4]);

	if (err)
		finish(false, "mount %s %s on %s: %s", f[1], f[2], f[3], strerror(-err));
}

static void check(const char *what, char **argv, const struct result *r)
{
	if (r->timed_out)
		finish(false, "%s %s: timed out after %g s", what, argv[0], timeout_ns / 1e9);
	if (r->signal)
		finish(false, "%s %s: killed by signal %d", what, argv[0], r->signal);
	if (r->exit)
		finish(false, "%s %s: exit status %d", what, argv[0], r->exit);
}

static void do_prep(char **f)
{
	struct result r = run_command(f + 1, timeout_ns, false);

	if (r.exit)
		run_emit_output();
	run_emit("prep", f + 1, &r);
	check("prep", f + 1, &r);
}

static void do_run(char **f)
{
	struct result r = run_command(f + 1, timeout_ns, true);

	run_emit_output();
	run_emit("run", f + 1, &r);
	counters_emit();
	check("run", f + 1, &r);
}

/* For people: a shell on the console's real terminal, so that ^C works. */
static void do_shell(char **f)
{
	char name[64], path[80];
	char *word;
	pid_t pid;

	(void)f;
	read_line("/sys/class/tty/console/active", name, sizeof(name));
	word = strrchr(name, ' ');
	snprintf(path, sizeof(path), "/dev/%s", word ? word + 1 : name);
	pid = fork();
	if (!pid) {
		int fd;

		setsid();
		fd = open(path, O_RDWR);
		if (fd >= 0) {
			ioctl(fd, TIOCSCTTY, 1);
			dup2(fd, STDIN_FILENO);
			dup2(fd, STDOUT_FILENO);
			dup2(fd, STDERR_FILENO);
		}
		execlp("busybox", "sh", "-l", NULL);
		_exit(127);
	}
	while (pid > 0 && waitpid(-1, NULL, 0) != pid)
		;
}

/* Name, fewest and most fields (the name included), what to do. */
static const struct directive {
	const char *name;
	int min, max;
	void (*fn)(char **fields);
} directives[] = {
	{ "seed", 2, 2, do_seed },
	{ "timeout", 2, 2, do_timeout },
	{ "write", 3, 3, do_write },
	{ "mkdir", 2, 2, do_mkdir },
	{ "mount", 4, 5, do_mount },
	{ "prep", 2, MAX_FIELDS, do_prep },
	{ "run", 2, MAX_FIELDS, do_run },
	{ "shell", 1, 1, do_shell },
};

static void do_line(char *line)
{
	char *fields[MAX_FIELDS + 1] = { NULL };
	size_t i;
	int n = 0;
	char *p = line;

	if (!*line)
		return;
	do {
		if (n == MAX_FIELDS)
			finish(false, "job: more than %d fields in `%.40s...`", MAX_FIELDS, line);
		fields[n++] = strsep(&p, "\t");
	} while (p);
	for (i = 0; i < sizeof(directives) / sizeof(directives[0]); i++) {
		const struct directive *d = &directives[i];

		if (strcmp(d->name, fields[0]))
			continue;
		if (n < d->min || n > d->max)
			finish(false, "job: `%s` takes %d to %d fields, not %d", d->name, d->min - 1, d->max - 1, n - 1);
		d->fn(fields);
		return;
	}
	finish(false, "job: unknown directive `%.40s`", fields[0]);
}

void do_job(void)
{
	static char job[JOB_SIZE + 1];
	ssize_t n = read_file(JOB_FILE, job, sizeof(job));
	char *p = job;

	if (n < 0)
		finish(false, "job: cannot read %s: %s", JOB_FILE, strerror(-n));
	if (n != JOB_SIZE)
		finish(false, "job: %zd bytes, expected %d", n, JOB_SIZE);
	while (p)
		do_line(strsep(&p, "\n"));
}
