import { OUT_OF_MEMORY_CLOSE } from '@svc/contract/channel';

/** Close codes of a WebSocket: those of RFC 6455, and our own. */
export const CLOSE = {
  normal: 1000,
  goingAway: 1001,
  protocolError: 1002,
  refused: 1008,
  failed: 1011,
  outOfMemory: OUT_OF_MEMORY_CLOSE,
} as const;

/** The protocol allows 123 bytes. */
const MAX_REASON_LENGTH = 120;

export function closeReason(text: string): string {
  return text.slice(0, MAX_REASON_LENGTH);
}
