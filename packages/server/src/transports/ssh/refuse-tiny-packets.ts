import type { Connection } from 'ssh2';

/** Of the bytes of a packet, the part that is no content is then a tenth. OpenSSH, PuTTY and Dropbear take 16 KiB or more. */
const LEAST_PACKET_BYTES = 512;
/** `SSH_OPEN_CONNECT_FAILED` is about a target; this is about what the client asks for. RFC 4254, 5.1. */
const ADMINISTRATIVELY_PROHIBITED = 1;

interface Opened {
  readonly sender: number;
  readonly packetSize: number;
}

interface Protocol {
  readonly _handlers: { CHANNEL_OPEN?: (protocol: Protocol, opened: Opened) => void };
  channelOpenFail(recipient: number, reason: number, description: string): void;
}

/**
 * Opens no channel for a client that takes next to nothing at a time. ssh2 sends what it has in pieces of the size that was asked for: at
 * 0 it makes empty packets for ever, which takes the thread and then the memory that serve everybody.
 * @throws Error when ssh2 is not as it was when this was written; the connection is not served then
 */
export function refuseTinyPackets(client: Connection): void {
  // Not in its types, and there is no event that tells the size before a channel stands.
  const { _protocol: protocol } = client as unknown as { readonly _protocol: Protocol };
  const open = protocol._handlers.CHANNEL_OPEN;
  if (open === undefined)
    throw new Error('ssh2 opens channels in another way: find where to look at their packet size');
  protocol._handlers.CHANNEL_OPEN = (self, opened) => {
    if (opened.packetSize >= LEAST_PACKET_BYTES) return open(self, opened);
    self.channelOpenFail(
      opened.sender,
      ADMINISTRATIVELY_PROHIBITED,
      `packets of at least ${LEAST_PACKET_BYTES} bytes must be taken`,
    );
  };
}
