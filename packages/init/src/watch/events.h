#ifndef SVC_WATCH_EVENTS_H
#define SVC_WATCH_EVENTS_H

#include <stdbool.h>

/** Starts reporting changes to observers. False with errno: no inotify instance is available. */
bool events_open(void);
void events_close(void);

#endif
