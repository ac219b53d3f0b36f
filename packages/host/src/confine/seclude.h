#ifndef SVC_SECLUDE_H
#define SVC_SECLUDE_H

/**
 * Executes a program of svc that accepts connections and reads hostile input:
 * `chooses count link… count path… program argument…`.
 * - `chooses` is 1 when it opens sockets at addresses of its choice, 0 when it accepts connections on inherited sockets only.
 * - With paths it sees only these, read-only, below an empty read-only root; without paths all of the host.
 * - With a link, in the parts of `parse_link_plan`, it has a network namespace of its own, which the link joins to that of the host; without
 *   one it has the network of the host. Open descriptors stay, and sockets among them belong to the namespace where they were opened.
 * - It keeps of root's capabilities those that it needs to read its own program and to change its user. A seccomp filter leaves it
 *   sockets of IPv4 and IPv6, threads and files.
 * Returns an exit status when it fails, with the reason on stderr.
 */
int seclude(int count, char **arguments);

#endif
