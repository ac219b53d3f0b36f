#ifndef SVC_DESCRIPTORS_H
#define SVC_DESCRIPTORS_H

#include <stdbool.h>

/** Raises the number of descriptors this program may have, and keeps the last FDS_RESERVED of them for itself. */
void descriptors_init(void);
/** True when a descriptor number lies in the part kept for PID 1 itself. */
bool is_reserved_fd(int fd);

/** Closes every descriptor from `first` on. */
void close_inherited(int first);

#endif
