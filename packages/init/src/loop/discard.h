#ifndef SVC_DISCARD_H
#define SVC_DISCARD_H

/** Reads the descriptor to its end and throws everything away; takes it. -1 is nothing. */
void discard(int fd);

#endif
