import { setTimeout as delay } from 'node:timers/promises';
import type { Capabilities, EngineClient } from '@svc/engine/client';

const POLL_MS = 25;

/** Asks until the engine answers; undefined when `isOver` says that it never will, or after `timeoutMs`. */
export async function waitForEngine(
  engine: EngineClient,
  timeoutMs: number,
  isOver: () => boolean,
): Promise<Capabilities | undefined> {
  const deadline = performance.now() + timeoutMs;
  while (performance.now() < deadline && !isOver()) {
    const answer = await engine.capabilities(AbortSignal.timeout(timeoutMs)).catch(() => undefined);
    if (answer !== undefined) return answer;
    await delay(POLL_MS);
  }
  return undefined;
}
