#ifndef SVC_LISTEN_H
#define SVC_LISTEN_H

/**
 * What `svc-host --listen ADDRESS DESCRIPTOR PROGRAM ARGUMENT…` does: opens a TCP socket that may be given connections meant for
 * any address, which takes a privilege, and becomes the program, which needs none to accept from it. Returns only when it failed.
 */
int listen_and_become(int count, char **arguments);

#endif
