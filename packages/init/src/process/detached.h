#ifndef SVC_DETACHED_H
#define SVC_DETACHED_H

#include "wire/conn.h"

// svc.detached.*: processes that a client starts and that outlive its connection. Any later client may read their latest
// output from any offset, write to them, signal them and forget them.
void detached_start(struct conn *, struct message *);
void detached_list(struct conn *, struct message *);
void detached_read(struct conn *, struct message *);
void detached_stdin(struct conn *, struct message *);
void detached_signal(struct conn *, struct message *);
void detached_resize(struct conn *, struct message *);
void detached_forget(struct conn *, struct message *);
void detached_recall(struct conn *, struct message *);
void detached_timeout(struct conn *, struct message *);

/** Ends all spare processes, because their defaults are outdated. */
void detached_end_spares(void);

/** Number of spare processes. */
unsigned detached_count_spares(void);

#endif
