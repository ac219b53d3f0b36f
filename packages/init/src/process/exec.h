#ifndef SVC_EXEC_H
#define SVC_EXEC_H

#include "wire/conn.h"

// core.exec.*: processes that belong to the connection that started them.
void exec_request(struct conn *, struct message *);
void exec_stdin(struct conn *, struct message *);
void exec_signal(struct conn *, struct message *);
void exec_resize(struct conn *, struct message *);

/** The client with this connection number has left: kills its processes, also those that survived the end of its connection. */
void exec_drop(uint32_t connection);

#endif
