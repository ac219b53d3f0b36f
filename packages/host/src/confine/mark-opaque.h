#ifndef SVC_MARK_OPAQUE_H
#define SVC_MARK_OPAQUE_H

/**
 * Marks folders below `root` as opaque for overlayfs: names relative to it, each ended by a NUL, on stdin. The mark is an attribute
 * that root alone can set, so the program that unpacked the layer could not. Returns an exit status.
 */
int mark_opaque(const char *root);

#endif
