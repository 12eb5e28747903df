// SPDX-License-Identifier: GPL-2.0-or-later
/* Starts a command and waits for it, in virtual time. */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "kpci.h"

enum { OUTPUT_CAP = 256 * 1024 };

/*
 * Output goes to a file in memory, not to a pipe: a reader would be woken by every write,
 * next to the workload that is measured.
 */
static int output = -1;

static void child(char **argv, const sigset_t *mask)
{
	int null = open("/dev/null", O_RDONLY);

	setpgid(0, 0);
	dup2(null, STDIN_FILENO);
	dup2(output, STDOUT_FILENO);
	dup2(output, STDERR_FILENO);
	sigprocmask(SIG_SETMASK, mask, NULL);
	execvp(argv[0], argv);
	dprintf(STDERR_FILENO, "cannot run %s: %s\n", argv[0], strerror(errno));
	_exit(127);
}

/* Reaps whatever died, also what init inherited; true when `pid` did. */
static bool reap(pid_t pid, int *status, struct rusage *usage)
{
	bool found = false;
	struct rusage u;
	pid_t p;
	int s;

	while ((p = wait4(-1, &s, WNOHANG, &u)) > 0) {
		if (p == pid) {
			*status = s;
			*usage = u;
			found = true;
		}
	}
	return found;
}

static bool wait_until(pid_t pid, int64_t deadline, const sigset_t *chld, int *status, struct rusage *usage)
{
	while (!reap(pid, status, usage)) {
		int64_t left = deadline - now_ns();
		struct timespec ts = { left / 1000000000, left % 1000000000 };

		if (left <= 0)
			return false;
		sigtimedwait(chld, NULL, &ts);
	}
	return true;
}

struct result run_command(char **argv, int64_t timeout_ns, bool measured)
{
	struct result r = { .exit = -1 };
	sigset_t chld, old;
	int64_t start;
	int status = 0;
	pid_t pid;

	if (output < 0)
		output = memfd_create("output", MFD_CLOEXEC);
	if (ftruncate(output, 0) || fcntl(output, F_SETFL, O_APPEND))
		finish(false, "cannot capture output: %s", strerror(errno));
	sigemptyset(&chld);
	sigaddset(&chld, SIGCHLD);
	sigprocmask(SIG_BLOCK, &chld, &old);
	if (measured)
		counters_start();
	start = now_ns();
	pid = fork();
	if (pid < 0)
		finish(false, "cannot fork for %s: %s", argv[0], strerror(errno));
	if (!pid)
		child(argv, &old);
	r.timed_out = !wait_until(pid, start + timeout_ns, &chld, &status, &r.usage);
	r.elapsed_ns = now_ns() - start;
	if (measured)
		counters_stop();
	if (r.timed_out) {
		kill(-pid, SIGKILL);
		/* A member that left the group is ours to end too: init may kill all but itself. */
		kill(-1, SIGKILL);
		wait_until(pid, now_ns() + 5000000000LL, &chld, &status, &r.usage);
	}
	sigprocmask(SIG_SETMASK, &old, NULL);
	if (WIFEXITED(status) && !r.timed_out)
		r.exit = WEXITSTATUS(status);
	if (WIFSIGNALED(status))
		r.signal = WTERMSIG(status);
	return r;
}

/* The last command's output: whole, or its first and last halves around a cut. */
void run_emit_output(void)
{
	static char text[OUTPUT_CAP];
	struct stat st = { 0 };
	size_t len, half = OUTPUT_CAP / 2;
	ssize_t n;

	fstat(output, &st);
	len = st.st_size;
	if (len <= OUTPUT_CAP) {
		n = pread(output, text, len, 0);
		half = n < 0 ? 0 : n;
	} else if (pread(output, text, half, 0) < 0 || pread(output, text + half, half, len - half) < 0) {
		half = 0;
	}
	json_begin("output");
	json_str("stream", "stdout+stderr");
	json_int("bytes", len);
	json_bool("truncated", len > OUTPUT_CAP);
	json_key("text");
	json_text(text, half);
	if (len > OUTPUT_CAP) {
		json_key("tail");
		json_text(text + half, half);
	}
	json_end();
}

void run_emit(const char *event, char **argv, const struct result *r)
{
	const struct rusage *u = &r->usage;

	json_begin(event);
	json_argv(argv);
	json_int("exit", r->exit);
	json_int("signal", r->signal);
	json_bool("timed_out", r->timed_out);
	json_int("elapsed_ns", r->elapsed_ns);
	json_int("utime_us", u->ru_utime.tv_sec * 1000000LL + u->ru_utime.tv_usec);
	json_int("stime_us", u->ru_stime.tv_sec * 1000000LL + u->ru_stime.tv_usec);
	json_int("minflt", u->ru_minflt);
	json_int("majflt", u->ru_majflt);
	json_int("nvcsw", u->ru_nvcsw);
	json_int("nivcsw", u->ru_nivcsw);
	json_end();
}
