import { existsSync } from 'node:fs';
import { setTimeout as delay } from 'node:timers/promises';
import type { HostCalls } from '../host/host-calls.ts';

const POLL_INTERVAL_MS = 5;
const PATIENCE_MS = 500;

/**
 * A veth goes with its namespace, in the background and many at a time, which is far cheaper than deleting it; but a
 * namespace that somebody still holds keeps it. After a while it is deleted, which takes the sandbox off the network.
 */
export async function waitUntilLinkIsGone(name: string, hostCalls: HostCalls): Promise<void> {
  const deadline = performance.now() + PATIENCE_MS;
  while (existsSync(`/sys/class/net/${name}`)) {
    if (performance.now() > deadline) return hostCalls.deleteLink(name);
    await delay(POLL_INTERVAL_MS);
  }
}
