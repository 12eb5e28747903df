/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The guest agent of kpatch-ci: what its files share. */
#ifndef KPCI_H
#define KPCI_H

#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/resource.h>

/* util.c */
ssize_t read_file(const char *path, char *buf, size_t size);
bool read_line(const char *path, char *buf, size_t size);
int write_file(const char *path, const char *value);
int make_dirs(const char *path);
int make_mount(const char *type, const char *dev, const char *dir, const char *opts);
int64_t now_ns(void);
void console(const char *fmt, ...) __attribute__((format(printf, 1, 2)));

/* json.c: one object a line into the result channel */
int json_open_channel(void);
void json_begin(const char *event);
void json_end(void);
void json_key(const char *key);
void json_open(char bracket);
void json_close(char bracket);
void json_text(const char *text, size_t len);
void json_str(const char *key, const char *text);
void json_int(const char *key, int64_t value);
void json_bool(const char *key, bool value);
void json_file(const char *key, const char *path);
void json_argv(char **argv);

/* facts.c */
void emit_facts(void);

/* seed.c */
int mix_boot_seed(void);
int apply_run_seed(uint64_t seed);

/* counters.c */
void counters_open(void);
void counters_start(void);
void counters_stop(void);
void counters_emit(void);

/* schedstat.c: `field` counts from 1, after the line's name */
bool schedstat_known(const char *text);
int64_t schedstat_sum(const char *text, int field);
int64_t schedstat_cpu(const char *text, int cpu, int field);

/* frequency.c */
void frequency_touch(void);
void frequency_start(void);
void frequency_stop(void);
void frequency_emit(int64_t start, int64_t end);

/* run.c */
struct result {
	int exit;
	int signal;
	bool timed_out;
	int64_t elapsed_ns;
	struct rusage usage;
};

struct result run_command(char **argv, int64_t timeout_ns, bool measured);
void run_emit_output(void);
void run_emit(const char *event, char **argv, const struct result *r);

/* pci.c */
int pci_open(void);
int pause_guest(void);
void end_guest(void);

/* job.c */
void do_job(void);

/* agent.c */
void finish(bool ok, const char *fmt, ...) __attribute__((noreturn, format(printf, 2, 3)));

#endif
