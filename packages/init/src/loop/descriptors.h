#ifndef SVC_DESCRIPTORS_H
#define SVC_DESCRIPTORS_H

#include <stdbool.h>

/** Raises the limit of open descriptors, and reserves the last FDS_RESERVED of them for this program. */
void descriptors_init(void);
/** True when a descriptor number is in the reserved range. */
bool is_reserved_fd(int fd);

/** Closes every descriptor from `first` on. */
void close_inherited(int first);

#endif
