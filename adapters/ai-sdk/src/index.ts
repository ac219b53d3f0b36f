export { createSvcSandbox } from './provider.ts';
export type { SvcSandboxSettings } from './provider.ts';
