export { dialNode as dial } from './node-dial.ts';
export { dialAhead } from './dial-ahead.ts';
export { isDirect, nodeFetch as platformFetch } from './node-fetch.ts';
export { readEnvironment } from './config.ts';

export const USER_AGENT: string | null = 'svc-sdk/0.1.0';
