import { spawn as nodeSpawn } from 'node:child_process';

/**
 * Node's `spawn`, safe at the limit of open files. There Node returns a child without pipes and emits `error` a moment later: the
 * caller fails at the pipes before it has a listener, and the unhandled event ends the process. This function throws instead.
 * @throws an error with the code `EMFILE`
 */
export const spawn = ((...words: Parameters<typeof nodeSpawn>) => {
  const child = nodeSpawn(...words);
  const wasGivenUp = child.pid === undefined && (child.stdio as typeof child.stdio | undefined) === undefined;
  if (!wasGivenUp) return child;
  child.once('error', () => undefined);
  throw Object.assign(new Error(`spawn ${words[0]}: no more files may be opened`), { code: 'EMFILE' });
}) as typeof nodeSpawn;
