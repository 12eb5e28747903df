// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * LD_PRELOAD for dbench: its clock runs KPCI_CLOCK_FACTOR times as fast as the guest's.
 *
 * dbench counts in whole seconds: it looks at its clients only when alarm(1) rings, `-t 2` measures
 * the first of two seconds, and `-t 1` measures nothing ("Throughput 0"). A busy virtual second
 * costs an emulator some six real ones, of which a replicate can spare one. With a factor of 20, `-t 4`
 * ends after 200 ms of virtual time and measures the first 150 ms of them. What dbench prints is per
 * second of *its* clock: true throughput = printed value * factor, true latency = printed / factor.
 */
#define _GNU_SOURCE
#include <stdlib.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

static long long factor = 1;
static long long start;

static long long now_us(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_REALTIME, &ts);
	return ts.tv_sec * 1000000LL + ts.tv_nsec / 1000;
}

/* Before main(), so that the parent and its clients share one start. */
__attribute__((constructor)) static void begin(void)
{
	const char *text = getenv("KPCI_CLOCK_FACTOR");

	if (text && atoll(text) > 0)
		factor = atoll(text);
	start = now_us();
}

int gettimeofday(struct timeval *restrict tv, void *restrict zone)
{
	long long us = start + (now_us() - start) * factor;

	(void)zone;
	tv->tv_sec = us / 1000000;
	tv->tv_usec = us % 1000000;
	return 0;
}

unsigned int alarm(unsigned int seconds)
{
	long long us = seconds * 1000000LL / factor;
	struct itimerval t = { .it_value = { us / 1000000, us % 1000000 } }, old;

	setitimer(ITIMER_REAL, &t, &old);
	return old.it_value.tv_sec * factor + !!old.it_value.tv_usec;
}
