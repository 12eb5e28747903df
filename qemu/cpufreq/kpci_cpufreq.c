// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * kpci_cpufreq - emulated frequency scaling for kpatch-ci guests.
 *
 * QEMU executes every instruction at one speed. This cpufreq driver makes a busy
 * CPU lose the share of time that a lower frequency would have cost it: a timer
 * fires after each quantum of work and spins, with interrupts off, for what is
 * owed. A CPU that idles has no timer; what it owes then is spun off when it is
 * busy again, so bursts shorter than a quantum are slowed alike.
 *
 * The spin is time in an interrupt. To the scheduler the running task runs all
 * the while (CONFIG_IRQ_TIME_ACCOUNTING is off), at a lower frequency: exactly
 * what it sees on hardware. The cpufreq core feeds arch_set_freq_scale().
 *
 * policy=MASK:KHZ/KHZ/...[@SPEED][,...]
 *	MASK is the policy's CPUs in hex. Frequencies rise. SPEED (1..1024, 1024
 *	unless given) is how fast these CPUs are at their highest frequency.
 */
#define pr_fmt(fmt) KBUILD_MODNAME ": " fmt

#include <linux/cpufreq.h>
#include <linux/cpumask.h>
#include <linux/hrtimer.h>
#include <linux/ktime.h>
#include <linux/math64.h>
#include <linux/module.h>
#include <linux/percpu.h>
#include <linux/perf_event.h>
#include <linux/sched.h>
#include <linux/slab.h>
#include <linux/smp.h>
#include <linux/string.h>
#include <linux/version.h>

#include "changes.h"

#define MAX_POLICIES	64
#define MAX_STEPS	32
#define RATIO_SHIFT	16
#define FULL_SPEED	1024
/* Longest spin at once; the rest stays owed. */
#define MAX_SPIN_NS	(2 * NSEC_PER_MSEC)
/* The counted loop in kpci_spin() is two instructions, 2 ns at icount shift 0. */
#define LOOP_NS		2
#define MAX_LOOP_NS	10000
#define MIN_LOOP_NS	60

static char *policy[MAX_POLICIES];
static int nr_policies;
module_param_array(policy, charp, &nr_policies, 0444);
MODULE_PARM_DESC(policy, "MASK:KHZ/KHZ/...[@SPEED], one for each frequency domain");

static unsigned int latency_us = 10;
module_param(latency_us, uint, 0444);
MODULE_PARM_DESC(latency_us, "transition latency that governors are told");

static unsigned int quantum_us = 50;
module_param(quantum_us, uint, 0444);
MODULE_PARM_DESC(quantum_us, "work between two spins");

/* What the timer's interrupt itself costs, which is no work of the task; see docs/cpufreq.md. */
#ifdef CONFIG_X86
static unsigned int overhead_ns = 1200;
#else
static unsigned int overhead_ns = 1000;
#endif
module_param(overhead_ns, uint, 0444);
MODULE_PARM_DESC(overhead_ns, "time of one timer interrupt without its spin");

/* A frequency domain. table[].driver_data: time owed for each unit of work, << RATIO_SHIFT. */
struct kpci_domain {
	struct cpumask cpus;
	struct cpufreq_frequency_table table[MAX_STEPS + 1];
	unsigned int khz;
	unsigned int ratio;
};

/*
 * Used by its own CPU with interrupts off, but for busy, ratio and csd, which
 * whoever changes the frequency looks at.
 */
struct kpci_cpu {
	struct kpci_domain *domain;
	struct perf_event *switches;
	struct hrtimer timer;
	call_single_data_t csd;
	ktime_t mark;		/* work up to here is in debt and left */
	s64 debt;		/* ns to spin */
	s64 left;		/* ns of work until the next spin */
	unsigned int ratio;
	bool busy;
};

static struct kpci_domain *domains[MAX_POLICIES];
static DEFINE_PER_CPU(struct kpci_cpu, kpci_cpus);

static s64 kpci_owed(s64 work, unsigned int ratio)
{
	return work * ratio >> RATIO_SHIFT;
}

static void kpci_account(struct kpci_cpu *c, ktime_t now)
{
	s64 work = ktime_sub(now, c->mark);

	c->debt += kpci_owed(work, c->ratio);
	c->left -= work;
	c->mark = now;
}

/* Pairs with the barrier in kpci_set(): either we see the new ratio or it sees ours. */
static void kpci_take_ratio(struct kpci_cpu *c)
{
	unsigned int ratio;

	do {
		ratio = READ_ONCE(c->domain->ratio);
		WRITE_ONCE(c->ratio, ratio);
		/* Ours is visible before the domain's is read again. */
		smp_mb();
	} while (ratio != READ_ONCE(c->domain->ratio));
}

static ktime_t kpci_next(struct kpci_cpu *c, ktime_t now)
{
	return ktime_add_ns(now, clamp_t(s64, c->left, NSEC_PER_USEC, quantum_us * NSEC_PER_USEC));
}

static void kpci_arm(struct kpci_cpu *c, ktime_t now)
{
	if (c->ratio)
		hrtimer_start(&c->timer, kpci_next(c, now), HRTIMER_MODE_ABS_PINNED_HARD);
}

/* Runs on its own CPU, interrupts off. An idle CPU takes the new speed when it leaves idle. */
static void kpci_refresh(void *info)
{
	struct kpci_cpu *c = this_cpu_ptr(&kpci_cpus);
	ktime_t now;

	if (is_idle_task(current)) {
		WRITE_ONCE(c->busy, false);
		return;
	}
	now = ktime_get();
	kpci_account(c, now);
	kpci_take_ratio(c);
	if (!hrtimer_is_queued(&c->timer))
		kpci_arm(c, now);
}

/*
 * Reading the clock leaves QEMU's execution loop, and so does cpu_relax(): hence
 * a counted loop between them. Other virtual CPUs may run meanwhile, so that it
 * takes longer than its instructions do; the caller accounts for what was spun.
 */
static ktime_t kpci_spin(ktime_t now, s64 ns)
{
	ktime_t end = ktime_add_ns(now, ns);
	s64 left;

	while ((left = ktime_sub(end, now)) > 0) {
		unsigned long n = clamp_t(s64, left, MIN_LOOP_NS, MAX_LOOP_NS) / LOOP_NS;

		do {
			barrier();
		} while (--n);
		/* Ends this virtual CPU's turn: see kpci_timer(). */
		cpu_relax();
		now = ktime_get();
	}
	return now;
}

static enum hrtimer_restart kpci_timer(struct hrtimer *timer)
{
	struct kpci_cpu *c = container_of(timer, struct kpci_cpu, timer);
	ktime_t now, start;

	if (is_idle_task(current)) {
		WRITE_ONCE(c->busy, false);
		return HRTIMER_NORESTART;
	}
	start = ktime_get();
	kpci_account(c, start);
	c->debt -= overhead_ns + kpci_owed(overhead_ns, c->ratio);
	now = start;
	if (c->debt > 0) {
		/*
		 * Setting the timer ends a virtual CPU's turn in QEMU, so that each
		 * quantum of work begins with the others' turns, which count as its
		 * own. So must each spin, or busy CPUs together are slowed too much.
		 */
		cpu_relax();
		now = kpci_spin(start, min_t(s64, c->debt, MAX_SPIN_NS));
		c->debt -= ktime_sub(now, start);
	}
	c->mark = now;
	c->left = quantum_us * NSEC_PER_USEC;
	kpci_take_ratio(c);
	if (!c->ratio)
		return HRTIMER_NORESTART;
	hrtimer_set_expires(timer, kpci_next(c, now));
	return HRTIMER_RESTART;
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
	ktime_t now;

	if (!is_idle_task(current)) {
		if (c->ratio)
			kpci_account(c, ktime_get());
		return;
	}
	WRITE_ONCE(c->busy, true);
	kpci_take_ratio(c);
	if (!c->ratio)
		return;
	now = ktime_get();
	c->mark = now;
	kpci_arm(c, now);
}

static void kpci_set(struct kpci_domain *d, unsigned int index)
{
	unsigned int khz = d->table[index].frequency;
	unsigned long flags;
	int cpu;

	if (khz != d->khz)
		kpci_record(cpumask_first(&d->cpus), d->khz, khz);
	WRITE_ONCE(d->khz, khz);
	WRITE_ONCE(d->ratio, d->table[index].driver_data);
	/* Pairs with kpci_take_ratio(). */
	smp_mb();
	local_irq_save(flags);
	for_each_cpu(cpu, &d->cpus) {
		struct kpci_cpu *c = per_cpu_ptr(&kpci_cpus, cpu);

		if (cpu == smp_processor_id())
			kpci_refresh(NULL);
		else if (READ_ONCE(c->busy) && !READ_ONCE(c->ratio) && READ_ONCE(d->ratio))
			/* It has no timer. -EBUSY: it is about to look anyway. */
			smp_call_function_single_async(cpu, &c->csd);
	}
	local_irq_restore(flags);
}

static int kpci_target_index(struct cpufreq_policy *p, unsigned int index)
{
	kpci_set(p->driver_data, index);
	return 0;
}

/*
 * The lowest frequency that is not below khz, which the core has clamped to the
 * policy's limits. (The core's own look-up has other arguments in every tree.)
 */
static unsigned int kpci_fast_switch(struct cpufreq_policy *p, unsigned int khz)
{
	struct kpci_domain *d = p->driver_data;
	unsigned int index = 0;

	while (d->table[index].frequency < khz &&
	       d->table[index + 1].frequency != CPUFREQ_TABLE_END)
		index++;
	kpci_set(d, index);
	return d->table[index].frequency;
}

static unsigned int kpci_get(unsigned int cpu)
{
	return READ_ONCE(per_cpu(kpci_cpus, cpu).domain->khz);
}

static void kpci_show_policies(struct seq_file *m)
{
	int i;

	for (i = 0; i < nr_policies; i++)
		seq_printf(m, "policy %u %u\n", cpumask_first(&domains[i]->cpus), READ_ONCE(domains[i]->khz));
}

static int kpci_init(struct cpufreq_policy *p)
{
	struct kpci_domain *d = per_cpu(kpci_cpus, p->cpu).domain;

	cpumask_copy(p->cpus, &d->cpus);
	p->driver_data = d;
	p->freq_table = d->table;
	p->cpuinfo.transition_latency = latency_us * NSEC_PER_USEC;
	p->fast_switch_possible = true;
	p->dvfs_possible_from_any_cpu = true;
	return 0;
}

static struct cpufreq_driver kpci_driver = {
	.name		= "kpci_cpufreq",
	.flags		= CPUFREQ_HAVE_GOVERNOR_PER_POLICY,
	.init		= kpci_init,
	.verify		= cpufreq_generic_frequency_table_verify,
	.target_index	= kpci_target_index,
	.fast_switch	= kpci_fast_switch,
	.get		= kpci_get,
	.attr		= cpufreq_generic_attr,
};

/* Fills in the time owed for each unit of work: the reciprocal of the speed, less one. */
static int kpci_set_ratios(struct kpci_domain *d, int steps, unsigned int speed)
{
	u64 most = (u64)d->table[steps - 1].frequency * FULL_SPEED << RATIO_SHIFT;
	int i;

	for (i = 0; i < steps; i++) {
		u64 slow = (u64)d->table[i].frequency * speed;
		u64 ratio = div64_u64(most + slow / 2, slow) - (1 << RATIO_SHIFT);

		if (ratio > U32_MAX)
			return -ERANGE;
		d->table[i].driver_data = ratio;
	}
	d->table[steps].frequency = CPUFREQ_TABLE_END;
	d->khz = d->table[steps - 1].frequency;
	d->ratio = d->table[steps - 1].driver_data;
	return 0;
}

static int kpci_parse_policy(struct kpci_domain *d, char *text)
{
	unsigned int speed = FULL_SPEED, last = 0;
	char *mask = strsep(&text, ":");
	char *list = strsep(&text, "@"), *word;
	int steps = 0, err;

	if (!list)
		return -EINVAL;
	err = cpumask_parse(mask, &d->cpus);
	if (err)
		return err;
	if (cpumask_empty(&d->cpus) || !cpumask_subset(&d->cpus, cpu_possible_mask))
		return -EINVAL;
	if (text) {
		err = kstrtouint(text, 10, &speed);
		if (err)
			return err;
		if (!speed || speed > FULL_SPEED)
			return -ERANGE;
	}
	while ((word = strsep(&list, "/"))) {
		unsigned int khz;

		err = kstrtouint(word, 10, &khz);
		if (err)
			return err;
		if (khz <= last || steps == MAX_STEPS)
			return -ERANGE;
		d->table[steps++].frequency = khz;
		last = khz;
	}
	return kpci_set_ratios(d, steps, speed);
}

static int kpci_add_policy(int number)
{
	struct kpci_domain *d = kzalloc(sizeof(*d), GFP_KERNEL);
	char *text = kstrdup(policy[number], GFP_KERNEL);
	int cpu, err = -ENOMEM;

	if (d && text)
		err = kpci_parse_policy(d, text);
	kfree(text);
	domains[number] = d;
	if (err) {
		pr_err("policy %s: error %d\n", policy[number], err);
		return err;
	}
	for_each_cpu(cpu, &d->cpus) {
		if (per_cpu(kpci_cpus, cpu).domain) {
			pr_err("CPU %d is in two policies\n", cpu);
			return -EINVAL;
		}
		per_cpu(kpci_cpus, cpu).domain = d;
	}
	return 0;
}

static int kpci_watch(int cpu)
{
	struct perf_event_attr attr = {
		.type		= PERF_TYPE_SOFTWARE,
		.config		= PERF_COUNT_SW_CONTEXT_SWITCHES,
		.size		= sizeof(attr),
		.sample_period	= 1,
		.pinned		= 1,
	};
	struct kpci_cpu *c = per_cpu_ptr(&kpci_cpus, cpu);
	struct perf_event *event;

	if (!c->domain) {
		pr_err("CPU %d is in no policy\n", cpu);
		return -EINVAL;
	}
#if KERNEL_VERSION(6, 13, 0) <= LINUX_VERSION_CODE
	hrtimer_setup(&c->timer, kpci_timer, CLOCK_MONOTONIC, HRTIMER_MODE_ABS_PINNED_HARD);
#else
	hrtimer_init(&c->timer, CLOCK_MONOTONIC, HRTIMER_MODE_ABS_PINNED_HARD);
	c->timer.function = kpci_timer;
#endif
	c->csd.func = kpci_refresh;
	c->left = quantum_us * NSEC_PER_USEC;
	c->mark = ktime_get();
	event = perf_event_create_kernel_counter(&attr, cpu, NULL, kpci_switch, NULL);
	if (IS_ERR(event))
		return PTR_ERR(event);
	c->switches = event;
	return 0;
}

static void kpci_clean(void)
{
	int cpu, i;

	for_each_possible_cpu(cpu) {
		struct kpci_cpu *c = per_cpu_ptr(&kpci_cpus, cpu);

		if (!c->switches)
			continue;
		perf_event_release_kernel(c->switches);
		hrtimer_cancel(&c->timer);
	}
	for (i = 0; i < nr_policies; i++)
		kfree(domains[i]);
}

static int __init kpci_cpufreq_init(void)
{
	int cpu, i, err = 0;

	if (!nr_policies || !quantum_us)
		return -EINVAL;
	for (i = 0; i < nr_policies && !err; i++)
		err = kpci_add_policy(i);
	/* No hotplug: the CPUs of a guest are there from its boot on. */
	for_each_online_cpu(cpu) {
		if (!err)
			err = kpci_watch(cpu);
	}
	if (!err)
		err = cpufreq_register_driver(&kpci_driver);
	if (err)
		kpci_clean();
	else
		kpci_export_changes();
	return err;
}
module_init(kpci_cpufreq_init);

static void __exit kpci_cpufreq_exit(void)
{
	kpci_unexport_changes();
	cpufreq_unregister_driver(&kpci_driver);
	kpci_clean();
}
module_exit(kpci_cpufreq_exit);

MODULE_DESCRIPTION("Emulated frequency scaling for kpatch-ci guests");
MODULE_LICENSE("GPL");
