#ifndef SVC_RELAY_H
#define SVC_RELAY_H

/** `svc-host --relay`: joins connections of its parent process, as the lines on stdin say; see README.md. Ends when stdin does. */
int relay(void);

#endif
