#ifndef SVC_WATCH_INOTIFY_H
#define SVC_WATCH_INOTIFY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/inotify.h>

// The one inotify instance, and the events that were read and not handled yet.
extern int inotify_fd; // -1 while there is none

/** `ready`: there is something to read. False with errno: ENFILE when only reserved descriptors are left. */
bool inotify_start(void (*ready)(void));
void inotify_stop(void);
/** Whether `ready` is called. */
void inotify_want(bool is_wanted);

/** The event that begins so many bytes after the first unhandled one; NULL: it was not read yet. */
struct inotify_event *inotify_event_at(size_t offset);
static inline size_t inotify_size(const struct inotify_event *event) { return sizeof *event + event->len; }
/** Appends further events. False: there were none. Moves the events in memory in either case. */
bool inotify_read(void);
/** Removes the first event. */
void inotify_done(void);
/** Bytes handled since the start; and the position behind the last queued event. */
uint64_t inotify_position(void);
uint64_t inotify_queued(void);

#endif
