#ifndef SVC_LISTEN_H
#define SVC_LISTEN_H

/**
 * `svc-host --listen ADDRESS DESCRIPTOR GROUP PROGRAM ARGUMENT…`: opens a transparent TCP socket, which accepts connections to
 * any address and takes a privilege, and executes the program, which needs none to accept from it. The packet filter takes the socket for one
 * of a process of the group. Returns only on failure.
 */
int listen_and_become(int count, char **arguments);

#endif
