#ifndef SVC_UDP_H
#define SVC_UDP_H

#include "wire/conn.h"

// svc.udp.*: datagrams to one port of the sandbox's loopback, and the replies.
void udp_open(struct conn *, struct message *);
void udp_data(struct conn *, struct message *);
void udp_close(struct conn *, struct message *);

#endif
