import type { RestCallOutput } from '@svc/sdk';

export type SandboxRecord = RestCallOutput<'sandboxes.get'>;
