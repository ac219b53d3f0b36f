export { svc } from './provider.ts';
export type { SvcSnapshot } from './snapshots.ts';
export type { SvcConfig } from './create-options.ts';
