import type { Environment } from './config.ts';

export { dialBrowser as dial } from './browser-dial.ts';

export const USER_AGENT: string | null = null;

export function readEnvironment(): Environment {
  return {};
}
