#ifndef SVC_CONFINE_H
#define SVC_CONFINE_H

/**
 * Executes a program that reads hostile input, without any right on the host: `ids capabilities network count folder…
 * program argument…`. Started by bubblewrap as root, in the file system that the program may see.
 * - `ids` is the first of IDS_PER_SANDBOX unused ids of the host: the program is root among them, in its own user
 *   namespace, and the folders are mounted with that mapping, so that its files are stored with the ids that it sets. `any` is
 *   the same with half of all ids, for folders with files of any owner; when the file system of one cannot map ids, ids
 *   stay as they are: still without a capability outside of the namespace.
 * - `capabilities` is a mask in hex: its capabilities on the folders. `network` is 1 when it may make sockets.
 * Returns an exit status when it fails, with the reason on stderr.
 */
int confine(int count, char **arguments);

#endif
