#ifndef SVC_WATCH_SCAN_H
#define SVC_WATCH_SCAN_H

#include "watch/tree.h"

/** Lists the folders of the tree. `listed`: all listings are done. */
void scan_init(void (*listed)(void));
bool scans_are_waiting(void);
/** Forgets names that no future event can be about. */
void scans_settle(void);
/** Whether the listing of a new folder has reported this entry, and no event has since. */
bool scan_has_seen(struct folder *, const char *name);

#endif
