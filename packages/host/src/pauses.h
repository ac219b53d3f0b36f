#pragma once

#include <stdbool.h>

/**
 * For a kernel call that spins instead of sleeping while another task holds a lock, and may take the CPU that this task
 * needs to release it. From here on a timer interrupts this thread repeatedly, and the thread sleeps for a moment each time; the
 * interrupted call restarts.
 * A call that takes longer than the interval would never finish on a slow or busy host, so the intervals grow.
 * False: timers are not available, and the call runs without pauses. One at a time per thread.
 */
bool start_pauses(void);
void stop_pauses(void);
