#ifndef SVC_DURABLE_H
#define SVC_DURABLE_H

#include "conn.h"

// svc.process.*: processes that outlive every client and every engine, with output kept until it is acknowledged.
void durable_start(struct conn *, struct message *);
void durable_attach(struct conn *, struct message *);
void durable_ack(struct conn *, struct message *);
void durable_forget(struct conn *, struct message *);
void durable_stdin(struct conn *, struct message *);
void durable_signal(struct conn *, struct message *);
void durable_resize(struct conn *, struct message *);

void durable_write_states(struct writer *); // an array of ProcessState
void durable_room(void);                    // the engine has taken output: send more
void durable_detach_all(void);              // the engine is away

#endif
