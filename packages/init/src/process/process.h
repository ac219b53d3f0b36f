#ifndef SVC_PROCESS_H
#define SVC_PROCESS_H

#include "loop/children.h"
#include "loop/sink.h"
#include "process/spawn.h"

struct process;

/**
 * The owner of a process: a session of a connection, a durable process, or none after the end of its connection.
 * Order of calls: `started` or `failed`; then `readable` any number of times; `finished` last. The owner frees the
 * process after `failed` and `finished`, with process_free. `started` and the parts of `stdin` may be NULL.
 */
struct process_owner {
  void (*started)(struct process *);
  void (*failed)(struct process *, const struct failure *);
  /** Reads once from the stream: the result of read(), or -1 with errno EBUSY when the owner has no room now. */
  ssize_t (*readable)(struct process *, int stream, int fd);
  void (*finished)(struct process *);
  struct sink_owner stdin;
};

struct outlet {
  struct watch watch; // fd -1: ended
  struct process *process;
  size_t owed; // bytes that were in the pipe when the process was reaped and must still be delivered
};

struct process {
  struct child child;
  struct list all, owned; // `owned` is for the owner
  const struct process_owner *owner;
  pid_t pid;                 // also its group; valid until reaped
  uint64_t mark;             // tree-kill.h
  struct spawn_stack *stack; // spawn-stack.h
  struct watch error;
  struct outlet outlets[2];
  struct sink in;
  struct timer quiet, timeout;
  uint64_t quiet_until_ms, started_ns, exited_ns;
  bool tty, is_started, is_reaped, is_finished, was_killed, was_timed_out, was_oom, was_pids;
  bool explains_failure; // asks why it failed too, not only why it was killed
  uint32_t question;     // id of the open svc.killed or svc.failed, 0 when none
  int status;
};

/** Starts it. False: `failure` is filled, nothing runs, and the struct is not initialised. */
bool process_start(struct process *, struct launch *, const struct process_owner *, struct failure *);
/** Gives a running process to another owner. */
void process_set_owner(struct process *, const struct process_owner *);
/** Signals the whole group. ESRCH once it was reaped. 0 or an errno. */
int process_signal(struct process *, int signal);
/** SIGKILL to the group and to all its descendants, also those in groups and sessions of their own. 0 or an errno. */
int process_kill(struct process *);
/** Restarts the timeout from now; 0: none. */
void process_set_timeout(struct process *, uint64_t timeout_ms);
/** EOF of a stdin: closes it, unless it is a terminal, where the end of input is a byte (Ctrl-D). */
void process_stdin_ended(struct sink *);
/** The owner has room again. */
void process_resume(struct process *);
void process_free(struct process *);

// The end of the process, in the terms of the protocol.
const char *process_reason(const struct process *); // exit, signal, oom, timeout
int process_signal_number(const struct process *);  // 0 when no signal ended it
int process_code(const struct process *);           // -1 after a signal

/** The engine's answer to svc.killed or svc.failed. */
void process_explained(uint32_t question, bool is_oom, bool is_pids);
/** A shutdown is about to kill everything: SIGKILLs need no explanation from here on. */
void process_expect_kill(void);

#endif
