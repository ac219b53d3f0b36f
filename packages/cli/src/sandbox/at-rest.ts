import type { Sandbox } from '@svc/sdk';

/** Of a sandbox that does not run, and will not by itself. */
export const AT_REST: ReadonlySet<Sandbox['status']> = new Set(['created', 'stopped', 'failed']);
