#ifndef SVC_SERVE_FILES_H
#define SVC_SERVE_FILES_H

/** Arguments: DIR [UID GID]. Serves one session connection on descriptor 0, with DIR as root; ends at EOF. */
int serve_files(int count, char **arguments);

#endif
