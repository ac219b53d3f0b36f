import type { Environment } from './config.ts';

export { dialBrowser as dial } from './browser-dial.ts';

/** Browsers keep connections as they see fit. */
export const dialAhead: (serverUrl: string) => void = () => undefined;

export const isDirect: () => boolean = () => true;

/** Looked up with each call: programs replace it. */
export const platformFetch: typeof globalThis.fetch = (...request) => globalThis.fetch(...request);

export const USER_AGENT: string | null = null;

export function readEnvironment(): Environment {
  return {};
}
