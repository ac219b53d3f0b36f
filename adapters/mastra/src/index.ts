export type { SvcSandboxOptions } from './options.ts';
export { SvcSandbox } from './sandbox.ts';
