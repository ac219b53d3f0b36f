#ifndef SVC_TCP_H
#define SVC_TCP_H

#include "wire/conn.h"

// core.tcp.*: connections from inside the sandbox, whose names are resolved there.
void tcp_connect(struct conn *, struct message *);
void tcp_data(struct conn *, struct message *);
void tcp_eof(struct conn *, struct message *);
void tcp_close(struct conn *, struct message *);

#endif
