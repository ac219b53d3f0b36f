#ifndef SVC_TREE_KILL_H
#define SVC_TREE_KILL_H

#include <stdint.h>

// The processes of a command are identified by an inherited mark that none drops by accident: not with setsid, not
// by a second fork, not by closing descriptors or clearing the environment. It is the hard limit of RLIMIT_RSS, which no
// kernel enforces (Linux has not since 2.4.30, gVisor never did) and which every user may read in /proc/PID/limits.

/** The mark for the next process; 0 when none can be given. */
uint64_t tree_mark_new(uint64_t highest);
/** Sends SIGKILL to every process with the mark, and to those that they start meanwhile. Runs in the background. */
void tree_kill(uint64_t mark);

#endif
