export { dialBrowser as dial } from './browser-dial.ts';

export const USER_AGENT: string | null = null;

export function readEnvironment(): { readonly apiUrl?: string; readonly apiKey?: string } {
  return {};
}
