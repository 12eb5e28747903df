// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * kpci_switchcost - context switches that cost what they are told to, for kpatch-ci guests.
 *
 * QEMU models no cache, so that a switch costs its own instructions and nothing
 * else. This module lets the incoming task pay cost_ns on top: an interrupt that
 * is taken right after the switch, run queue unlocked, executes a counted loop.
 * To the scheduler that is the incoming task's time
 * (CONFIG_IRQ_TIME_ACCOUNTING is off).
 *
 * The loop counts instructions and reads no clock. Virtual CPUs run in turns and
 * share one clock: a spin until a time has passed would be paid in part by the
 * others' turns, and the more CPUs are busy the less a switch would cost
 * relative to the work beside it.
 *
 * Charged is a switch to a task other than the one that ran last on this CPU.
 * Switches to idle, and from idle back to the same task, are free.
 *
 * What the mechanism itself costs is taken off: see docs/overload.md.
 */
#define pr_fmt(fmt) KBUILD_MODNAME ": " fmt

#include <linux/irq_work.h>
#include <linux/ktime.h>
#include <linux/math64.h>
#include <linux/module.h>
#include <linux/percpu.h>
#include <linux/perf_event.h>
#include <linux/sched.h>

#define MAX_COST_NS	NSEC_PER_MSEC
#define LOOPS		4096
#define TRIES		5

static unsigned int cost_ns;
module_param(cost_ns, uint, 0444);
MODULE_PARM_DESC(cost_ns, "what a switch to another task costs, in ns of its CPU's own time");

/* What the mechanism adds to a switch of its own; see docs/overload.md. */
#ifdef CONFIG_X86
static unsigned int event_ns = 127, interrupt_ns = 304;
#else
static unsigned int event_ns = 164, interrupt_ns = 680;
#endif
module_param(event_ns, uint, 0444);
MODULE_PARM_DESC(event_ns, "the mechanism's own time in the switch");
module_param(interrupt_ns, uint, 0444);
MODULE_PARM_DESC(interrupt_ns, "the mechanism's own time in its interrupt");

static unsigned int loop_ps;
module_param(loop_ps, uint, 0444);
MODULE_PARM_DESC(loop_ps, "measured at load: one turn of the counted loop, in ps");

/* Used by its own CPU with interrupts off. */
struct kpci_cpu {
	struct perf_event *switches;
	struct irq_work work;
	pid_t last;	/* ran last here, the idle task aside */
	s64 debt;	/* ns to spin; below zero: paid in advance by the mechanism's own time */
};

static DEFINE_PER_CPU(struct kpci_cpu, kpci_cpus);
static noinline void kpci_loop(unsigned long n)
{
	do {
		barrier();
	} while (--n);
}

/* Runs on the CPU that has switched, as soon as it enables interrupts again. */
static void kpci_pay(struct irq_work *work)
{
	struct kpci_cpu *c = container_of(work, struct kpci_cpu, work);

	c->debt -= interrupt_ns;
	if (!is_idle_task(current) && c->last && current->pid != c->last)
		c->debt += cost_ns;
	if (c->debt > 0) {
		kpci_loop(div_u64((u64)c->debt * 1000 + loop_ps, loop_ps));
		c->debt = 0;
	}
	/* Many free switches in a row do not make the next ones free. */
	c->debt = max_t(s64, c->debt, -(s64)cost_ns);
}

/*
 * A counter of context switches with a period of one calls this in each of them,
 * on the CPU that switches, run queue locked; current is still the previous task.
 * No tracepoint is needed that way, and the event itself is exported to modules.
 */
static void kpci_switch(struct perf_event *event, struct perf_sample_data *data,
			struct pt_regs *regs)
{
	struct kpci_cpu *c = this_cpu_ptr(&kpci_cpus);

	if (!is_idle_task(current))
		c->last = current->pid;
	c->debt -= event_ns;
	irq_work_queue(&c->work);
}

static struct perf_event *kpci_counter(int cpu)
{
	struct perf_event_attr attr = {
		.type		= PERF_TYPE_SOFTWARE,
		.config		= PERF_COUNT_SW_CONTEXT_SWITCHES,
		.size		= sizeof(attr),
		.sample_period	= 1,
		.pinned		= 1,
	};

	return perf_event_create_kernel_counter(&attr, cpu, NULL, kpci_switch, NULL);
}

static u64 kpci_time_loop(unsigned long n)
{
	u64 start, ns, least = U64_MAX;
	unsigned long flags;
	int i;

	for (i = 0; i < TRIES; i++) {
		local_irq_save(flags);
		start = ktime_get_ns();
		kpci_loop(n);
		ns = ktime_get_ns() - start;
		local_irq_restore(flags);
		least = min(least, ns);
	}
	return least;
}

static void kpci_clean(void)
{
	int cpu;

	for_each_possible_cpu(cpu) {
		struct kpci_cpu *c = per_cpu_ptr(&kpci_cpus, cpu);

		if (c->switches)
			perf_event_release_kernel(c->switches);
		irq_work_sync(&c->work);
	}
}

static int __init kpci_switchcost_init(void)
{
	int cpu;

	if (cost_ns < event_ns + interrupt_ns || cost_ns > MAX_COST_NS) {
		pr_err("cost_ns is %u: from %u, which the mechanism takes, to %lu\n",
		       cost_ns, event_ns + interrupt_ns, MAX_COST_NS);
		return -ERANGE;
	}
	if (!arch_irq_work_has_interrupt())
		return -EOPNOTSUPP;
	for_each_possible_cpu(cpu)
		init_irq_work(&per_cpu_ptr(&kpci_cpus, cpu)->work, kpci_pay);
	/* The compiler may unroll it. The difference of two lengths: reading the clock is not in it. */
	loop_ps = div_u64((kpci_time_loop(2 * LOOPS) - kpci_time_loop(LOOPS)) * 1000, LOOPS);
	if (!loop_ps)
		return -EIO;
	/* No hotplug: the CPUs of a guest are there from its boot on. */
	for_each_online_cpu(cpu) {
		struct kpci_cpu *c = per_cpu_ptr(&kpci_cpus, cpu);
		struct perf_event *event = kpci_counter(cpu);

		if (IS_ERR(event)) {
			kpci_clean();
			return PTR_ERR(event);
		}
		c->switches = event;
	}
	return 0;
}
module_init(kpci_switchcost_init);

static void __exit kpci_switchcost_exit(void)
{
	kpci_clean();
}
module_exit(kpci_switchcost_exit);

MODULE_DESCRIPTION("Context switches with a cost for kpatch-ci guests");
MODULE_LICENSE("GPL");
