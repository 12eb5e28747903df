// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * The guest's agent on a board: not PID 1, started over SSH, once for each question. It shares the guest's
 * sources, so that a job means the same on both; only where the job comes from and where the events go differs.
 *
 *	kpci-agent facts		the `facts` event
 *	kpci-agent job < JOB		the job's events, the last of which is `end`
 */
#define _GNU_SOURCE
#include "json.c" /* the channel is static in there */
#include "job.c" /* and so is what a job's line does */

#include <signal.h>
#include <sys/prctl.h>

int __real_kill(pid_t pid, int sig);
int __wrap_kill(pid_t pid, int sig);

void finish(bool ok, const char *fmt, ...)
{
	char reason[512];
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(reason, sizeof(reason), fmt, ap);
	va_end(ap);
	json_begin("end");
	json_str("status", ok ? "ok" : "failed");
	json_str("reason", reason);
	json_end();
	exit(ok ? 0 : 1);
}

static pid_t parent_of(pid_t pid)
{
	char path[64], text[1024], *p;

	snprintf(path, sizeof(path), "/proc/%d/stat", pid);
	read_file(path, text, sizeof(text));
	p = strrchr(text, ')');	/* the name before it may hold anything */
	return p && strlen(p) > 4 ? atoi(p + 4) : 0;
}

static bool descends(pid_t pid)
{
	while (pid > 1) {
		pid = parent_of(pid);
		if (pid == getpid())
			return true;
	}
	return false;
}

/*
 * A command that took too long is ended with all that it started. PID 1 of a guest may kill everything for that;
 * here the SSH server is among everything. So kill(-1) means our own descendants, until none is left.
 */
int __wrap_kill(pid_t pid, int sig)
{
	int round;

	if (pid != -1)
		return __real_kill(pid, sig);
	for (round = 0; round < 16; round++) {
		DIR *dir = opendir("/proc");
		bool found = false;
		struct dirent *d;

		while (dir && (d = readdir(dir))) {
			pid_t one = atoi(d->d_name);

			if (one > 1 && one != getpid() && descends(one))
				found |= !__real_kill(one, sig);
		}
		if (dir)
			closedir(dir);
		if (!found)
			break;
	}
	return 0;
}

static void read_job(void)
{
	static char job[JOB_SIZE + 1];
	size_t len = 0;
	ssize_t n;
	char *p = job;

	while (len < JOB_SIZE && (n = read(STDIN_FILENO, job + len, JOB_SIZE - len)) > 0)
		len += n;
	if (!len)
		finish(false, "job: nothing on standard input");
	while (p)
		do_line(strsep(&p, "\n"));
}

int main(int argc, char **argv)
{
	channel = STDOUT_FILENO;
	setenv("PATH", "/usr/sbin:/usr/bin:/sbin:/bin", 1);
	setenv("HOME", "/tmp", 1);
	setenv("LC_ALL", "C", 1);
	/* What a command leaves behind is reaped here, as PID 1 does it in a guest. */
	prctl(PR_SET_CHILD_SUBREAPER, 1);
	counters_open();
	if (argc == 2 && !strcmp(argv[1], "facts"))
		emit_facts();
	else if (argc == 2 && !strcmp(argv[1], "job"))
		read_job();
	else
		finish(false, "usage: kpci-agent facts | job");
	finish(true, "%s done", argv[1]);
}
