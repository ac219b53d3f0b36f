#ifndef SVC_SERVE_OWN_SHARE_H
#define SVC_SERVE_OWN_SHARE_H

/**
 * Leaves the cgroup of the engine and its helpers, which weighs more than all sandboxes: serving takes as much of the processor as a guest
 * asks for. Nothing changes for a process that is elsewhere.
 */
void leave_own_share(void);

#endif
