#ifndef SVC_MARK_OPAQUE_H
#define SVC_MARK_OPAQUE_H

/**
 * Marks folders below `root` as opaque for overlayfs: relative names, each ended by a NUL, on stdin. Only root can set the attribute, so the
 * program that unpacked the layer could not. Returns an exit status.
 */
int mark_opaque(const char *root);

#endif
