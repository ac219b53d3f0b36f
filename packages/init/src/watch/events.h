#ifndef SVC_WATCH_EVENTS_H
#define SVC_WATCH_EVENTS_H

#include <stdbool.h>

/** Begins to tell observers of what changes. False with errno: there is no inotify instance to be had. */
bool events_open(void);
void events_close(void);

#endif
