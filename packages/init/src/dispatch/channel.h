#ifndef SVC_CHANNEL_H
#define SVC_CHANNEL_H

#include "wire/dial.h"

// Requests of clients: the public command channel, and our extensions.
extern const struct dialled channel_line;
extern const struct conn_handler channel_files_handler; // core.fs.*, ping and touch only
/** Sends the id range and core.ready. */
void channel_greet(struct conn *);

#endif
