#ifndef SVC_PTY_H
#define SVC_PTY_H

/** A new terminal: its master end, its slave end in `slave`. -1 with errno. */
int pty_open(int *slave, unsigned rows, unsigned cols);
void pty_resize(int master, unsigned rows, unsigned cols);

#endif
