#ifndef SVC_DURABLE_H
#define SVC_DURABLE_H

#include "wire/conn.h"

// svc.process.*: processes of the engine, which outlive every client and every engine; output is kept until it is acknowledged.
void durable_start(struct conn *, struct message *);
void durable_attach(struct conn *, struct message *);
void durable_ack(struct conn *, struct message *);

void durable_write_states(struct writer *); // an array of ProcessState
void durable_room(void);                    // the engine has read output: send more
void durable_detach_all(void);              // the engine is away

#endif
