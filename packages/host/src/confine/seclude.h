#ifndef SVC_SECLUDE_H
#define SVC_SECLUDE_H

/**
 * Becomes a program of ours that serves connections and reads hostile bytes: `chooses count path… program argument…`.
 * - `chooses` is 1 when it opens sockets at addresses of its choice, 0 when it takes connections from those alone that it is given.
 * - With paths it sees these alone, read-only, below an empty root that it cannot write to; with none all of the host.
 * - It keeps the descriptors that are open and the network of the host, and of root's capabilities what it needs to read its own
 *   program and to become another user. A seccomp filter leaves it sockets of IPv4 and IPv6, threads and files.
 * Returns an exit status when it fails; that it did not reach the program is told on stderr.
 */
int seclude(int count, char **arguments);

#endif
