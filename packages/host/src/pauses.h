#pragma once

#include <stdbool.h>

/**
 * For a call of the kernel that does not wait for a lock but tries again at once, inside, for as long as somebody else has it: a
 * processor full of nothing, which that somebody may need to come to an end. From here on this thread is interrupted again and again, and
 * sleeps for a moment each time; a call that was interrupted begins anew.
 * What takes longer than the time between two interruptions would never end so, on a slow or busy host: the times grow.
 * False: it cannot, and then it does without. One at a time in a thread.
 */
bool start_pauses(void);
void stop_pauses(void);
