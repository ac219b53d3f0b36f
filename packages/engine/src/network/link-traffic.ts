import { readFileSync } from 'node:fs';
import type { Slot, Traffic } from './network.ts';

export function readTraffic({ link }: Pick<Slot, 'link'>): Traffic {
  if (link === null) return { receivedBytes: 0, sentBytes: 0 };
  // Packets sent by the host's end are received by the sandbox.
  return {
    receivedBytes: readCounter(link.hostInterface, 'tx_bytes'),
    sentBytes: readCounter(link.hostInterface, 'rx_bytes'),
  };
}

function readCounter(hostInterface: string, counter: 'rx_bytes' | 'tx_bytes'): number {
  try {
    return Number(readFileSync(`/sys/class/net/${hostInterface}/statistics/${counter}`, 'utf8'));
  } catch {
    // The interface was removed with its sandbox.
    return 0;
  }
}
