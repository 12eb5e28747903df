/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The last KPCI_KEPT frequency changes, and when they were. Recording one is a store under a lock that nobody else
 * wants: it changes no decision and wakes nobody. When the ring is full the oldest entry goes; "recorded" counts on,
 * so a reader knows how many it missed.
 *
 * debugfs kpci_cpufreq/recorded	how many changes there were since the module was loaded
 * debugfs kpci_cpufreq/changes		"recorded N", "policy CPU KHZ" for each as it is now, then, oldest first,
 *					"change NS CPU FROM TO" (CLOCK_MONOTONIC, first CPU of the policy, kHz)
 *
 * Without debugfs there are no such files, and the module works as well.
 */
#ifndef KPCI_CHANGES_H
#define KPCI_CHANGES_H

#include <linux/debugfs.h>
#include <linux/ktime.h>
#include <linux/mm.h>
#include <linux/seq_file.h>
#include <linux/spinlock.h>

/* A policy changes at most once in 10 ms (latency_us 10): five seconds of eight busy policies. */
#define KPCI_KEPT	4096

struct kpci_change {
	u64 ns;
	u32 cpu;
	u32 from;
	u32 to;
};

static struct kpci_change kpci_changes[KPCI_KEPT];
static u32 kpci_recorded;
static DEFINE_RAW_SPINLOCK(kpci_changes_lock);
static struct dentry *kpci_dir;

/* From within the scheduler, too. */
static void kpci_record(unsigned int cpu, unsigned int from, unsigned int to)
{
	struct kpci_change *c;
	unsigned long flags;

	raw_spin_lock_irqsave(&kpci_changes_lock, flags);
	c = &kpci_changes[kpci_recorded++ % KPCI_KEPT];
	/* Read under the lock, so that entries are in the order of their times. */
	c->ns = ktime_get_ns();
	c->cpu = cpu;
	c->from = from;
	c->to = to;
	raw_spin_unlock_irqrestore(&kpci_changes_lock, flags);
}

/* Defined by the driver: "policy CPU KHZ" lines. */
static void kpci_show_policies(struct seq_file *m);

static int kpci_changes_show(struct seq_file *m, void *unused)
{
	struct kpci_change *copy = kvmalloc(sizeof(kpci_changes), GFP_KERNEL);
	unsigned long flags;
	u32 recorded, i;

	if (!copy)
		return -ENOMEM;
	/* First: a change that comes in between is then the first one after this. */
	kpci_show_policies(m);
	raw_spin_lock_irqsave(&kpci_changes_lock, flags);
	recorded = kpci_recorded;
	memcpy(copy, kpci_changes, sizeof(kpci_changes));
	raw_spin_unlock_irqrestore(&kpci_changes_lock, flags);
	seq_printf(m, "recorded %u\n", recorded);
	for (i = recorded > KPCI_KEPT ? recorded - KPCI_KEPT : 0; i != recorded; i++) {
		const struct kpci_change *c = &copy[i % KPCI_KEPT];

		seq_printf(m, "change %llu %u %u %u\n", c->ns, c->cpu, c->from, c->to);
	}
	kvfree(copy);
	return 0;
}
DEFINE_SHOW_ATTRIBUTE(kpci_changes);

static void kpci_export_changes(void)
{
	kpci_dir = debugfs_create_dir("kpci_cpufreq", NULL);
	debugfs_create_u32("recorded", 0444, kpci_dir, &kpci_recorded);
	debugfs_create_file("changes", 0444, kpci_dir, NULL, &kpci_changes_fops);
}

static void kpci_unexport_changes(void)
{
	debugfs_remove_recursive(kpci_dir);
}

#endif
