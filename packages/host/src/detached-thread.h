#ifndef SVC_DETACHED_THREAD_H
#define SVC_DETACHED_THREAD_H

#include <stdbool.h>

/** Runs `run(argument)` beside everything else, on a small stack. False when there is no thread to be had. */
bool start_detached_thread(void *(*run)(void *), void *argument);

#endif
