#ifndef SVC_DETACHED_THREAD_H
#define SVC_DETACHED_THREAD_H

#include <stdbool.h>

/** Runs `run(argument)` in a detached thread with a small stack. False when no thread can be made. */
bool start_detached_thread(void *(*run)(void *), void *argument);

#endif
