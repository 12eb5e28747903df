// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * LD_PRELOAD for QEMU with -icount: its main loop runs only while the vCPU thread sleeps.
 *
 * Why: icount_start_warp_timer() in the main loop asks "do all vCPUs idle?" while the vCPU thread may
 * be between setting cpu->halted (HLT, WFI) and accounting the instructions that led there
 * (icount_process_data()). The warp then starts from a clock that is too old, the virtual clock
 * overshoots by that many ns, and the run differs from its twins: on a busy host, about one replicate
 * in thirty, with dbench on x86_64. The main loop has nothing to do while guest code runs: virtual timers are run
 * by the vCPU thread then. So ppoll() returns to the main thread only when the vCPU thread waits.
 *
 * Needs `-name NAME,debug-threads=on`, by which the vCPU thread is known. A guest that never idles keeps the
 * main loop away: end such a QEMU with SIGKILL.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <linux/futex.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

static atomic_int running;	/* 1 from a wake-up of the vCPU thread to its next wait */
static pthread_cond_t *_Atomic vcpu_cond;
static pthread_mutex_t *_Atomic big_lock;

static int (*real_wait)(pthread_cond_t *, pthread_mutex_t *);
static int (*real_broadcast)(pthread_cond_t *);
static int (*real_signal)(pthread_cond_t *);
static int (*real_ppoll)(struct pollfd *, nfds_t, const struct timespec *, const sigset_t *);

__attribute__((constructor)) static void begin(void)
{
	real_wait = dlsym(RTLD_NEXT, "pthread_cond_wait");
	real_broadcast = dlsym(RTLD_NEXT, "pthread_cond_broadcast");
	real_signal = dlsym(RTLD_NEXT, "pthread_cond_signal");
	real_ppoll = dlsym(RTLD_NEXT, "ppoll");
}

static bool is_vcpu_thread(void)
{
	static _Thread_local int known;
	char name[16] = "";

	if (!known) {
		prctl(PR_GET_NAME, name);
		known = strcmp(name, "ALL CPUs/TCG") ? 1 : 2;
	}
	return known == 2;
}

int pthread_cond_wait(pthread_cond_t *cond, pthread_mutex_t *mutex)
{
	int r;

	if (!is_vcpu_thread())
		return real_wait(cond, mutex);
	/* The caller holds QEMU's big lock, so that the main loop cannot act on this before the wait. */
	atomic_store(&vcpu_cond, cond);
	atomic_store(&big_lock, mutex);
	atomic_store(&running, 0);
	syscall(SYS_futex, &running, FUTEX_WAKE_PRIVATE, 1, NULL, NULL, 0);
	r = real_wait(cond, mutex);
	atomic_store(&running, 1);
	return r;
}

int pthread_cond_broadcast(pthread_cond_t *cond)
{
	if (cond == atomic_load(&vcpu_cond))
		atomic_store(&running, 1);
	return real_broadcast(cond);
}

int pthread_cond_signal(pthread_cond_t *cond)
{
	if (cond == atomic_load(&vcpu_cond))
		atomic_store(&running, 1);
	return real_signal(cond);
}

/* A nested poll (draining, flushing) keeps the lock: the vCPU thread could never get to its wait. */
static bool owns_big_lock(void)
{
	pthread_mutex_t *m = atomic_load(&big_lock);

	return m && m->__data.__owner == gettid();
}

int ppoll(struct pollfd *fds, nfds_t n, const struct timespec *timeout, const sigset_t *mask)
{
	int r = real_ppoll(fds, n, timeout, mask);

	if (getpid() != gettid() || owns_big_lock())
		return r;
	while (atomic_load(&running))
		syscall(SYS_futex, &running, FUTEX_WAIT_PRIVATE, 1, NULL, NULL, 0);
	return r;
}
