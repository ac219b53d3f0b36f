#ifndef SVC_CONFINE_H
#define SVC_CONFINE_H

/**
 * Becomes a program that reads hostile bytes, without a right over anything of the host: `ids capabilities network count folder…
 * program argument…`. Started by bubblewrap as root, in the file system that the program is to see.
 * - `ids` is the first of IDS_PER_SANDBOX ids of the host that nobody else has: the program is root among them, in a user namespace
 *   of its own, and the folders are shown through that mapping, so that what it stores belongs to the ids that it names. `any` is
 *   the same with half of all ids, for folders with files of any owner; should the file system of one be unable to map ids, ids
 *   stay as they are: still without a capability outside of the namespace.
 * - `capabilities` is a mask in hex: what it may do to the folders. `network` is 1 when it may make sockets.
 * Returns an exit status when it fails; that it did not reach the program is told on stderr.
 */
int confine(int count, char **arguments);

#endif
