// SPDX-License-Identifier: GPL-2.0-or-later
/* Seeds: what makes one replicate differ from the next, and nothing else does. */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <linux/random.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "kpci.h"

enum { MAX_PHASE_NS = 8000000, MAX_SPINS = 1 << 20, MAX_CHILDREN = 16 };

/* splitmix64 (Steele, Lea, Flood 2014): any seed, 0 included, gives a good stream. */
static uint64_t draw(uint64_t *state)
{
	uint64_t z = (*state += 0x9e3779b97f4a7c15ULL);

	z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9ULL;
	z = (z ^ (z >> 27)) * 0x94d049bb133111ebULL;
	return z ^ (z >> 31);
}

static int mix(uint64_t *state)
{
	struct {
		struct rand_pool_info info;
		uint64_t words[8];
	} pool = { .info = { .entropy_count = 512, .buf_size = sizeof(pool.words) } };
	int err = 0;
	size_t i;
	int fd = open("/dev/urandom", O_WRONLY | O_CLOEXEC);

	/* The ioctl takes the words right behind the header. */
	_Static_assert(sizeof(pool) == sizeof(pool.info) + sizeof(pool.words), "padding");
	if (fd < 0)
		return -errno;
	for (i = 0; i < 8; i++)
		pool.words[i] = draw(state);
	if (ioctl(fd, RNDADDENTROPY, &pool) || ioctl(fd, RNDRESEEDCRNG))
		err = -errno;
	close(fd);
	return err;
}

/* kpci.boot_seed=N of the kernel's command line; no such word, nothing mixed. */
int mix_boot_seed(void)
{
	static const char key[] = "kpci.boot_seed=";
	char buf[4096], *p;
	uint64_t state;

	read_line("/proc/cmdline", buf, sizeof(buf));
	p = strstr(buf, key);
	if (!p)
		return 0;
	/* Boot seeds and run seeds are streams of their own. */
	state = strtoull(p + sizeof(key) - 1, NULL, 0) ^ 0x626f6f7400000000ULL;
	return mix(&state);
}

static void spin(uint64_t n)
{
	while (n--)
		__asm__ volatile("" ::: "memory");
}

/*
 * The random pool decides what is drawn from now on (layouts, hash seeds, stack offsets); the sleep
 * and the loop move the phase against the ticks; the children move pids and the idle CPUs' order.
 */
int apply_run_seed(uint64_t seed)
{
	uint64_t state = seed;
	struct timespec phase = { 0 };
	unsigned int children;
	int err = mix(&state);

	if (err)
		return err;
	phase.tv_nsec = draw(&state) % MAX_PHASE_NS;
	clock_nanosleep(CLOCK_MONOTONIC, 0, &phase, NULL);
	spin(draw(&state) % MAX_SPINS);
	for (children = draw(&state) % MAX_CHILDREN; children; children--) {
		uint64_t spins = draw(&state) % (MAX_SPINS / 16);
		pid_t pid = fork();

		if (pid < 0)
			return -errno;
		if (!pid) {
			spin(spins);
			_exit(0);
		}
		/* Two at a time: every other child is reaped by the next round or by the job. */
		if (children & 1)
			waitpid(pid, NULL, 0);
	}
	while (waitpid(-1, NULL, 0) > 0)
		;
	return 0;
}
