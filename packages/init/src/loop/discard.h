#ifndef SVC_DISCARD_H
#define SVC_DISCARD_H

/** Reads the descriptor to its end, discards the data and closes it. -1 is ignored. */
void discard(int fd);

#endif
