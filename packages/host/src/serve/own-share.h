#ifndef SVC_SERVE_OWN_SHARE_H
#define SVC_SERVE_OWN_SHARE_H

/**
 * Leaves the cgroup of the engine and its helpers, which weighs more than all sandboxes, for one that weighs as much as they do: serving
 * takes as much of the processor as a guest asks for. Where the engine could make none it stays.
 */
void leave_own_share(void);

/** Does so and becomes a program that works for one tenant. Returns only when it cannot. */
int stand_back(char **command);

#endif
