#ifndef SVC_WATCH_SCAN_H
#define SVC_WATCH_SCAN_H

#include "watch/tree.h"

/** Lists the folders of the tree. `listed`: nothing waits to be listed any more. */
void scan_init(void (*listed)(void));
bool scans_are_waiting(void);
/** Forgets what no event that is still to come can be about. */
void scans_settle(void);
/** Whether the listing of a new folder has told of this entry, and no event since has. */
bool scan_has_seen(struct folder *, const char *name);

#endif
