import type { Connection } from 'ssh2';

/** At this size, a tenth of each packet is overhead. OpenSSH, PuTTY and Dropbear use 16 KiB or more. */
const LEAST_PACKET_BYTES = 512;
/** `SSH_OPEN_CONNECT_FAILED` would be about a target; this refuses the client's parameters. RFC 4254, 5.1. */
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
 * Refuses channels with a tiny maximum packet size. ssh2 splits data into packets of that size: with 0 it sends empty
 * packets forever, which takes all CPU time and then all memory.
 * @throws Error when the internals of ssh2 have changed; the connection is refused then
 */
export function refuseTinyPackets(client: Connection): void {
  // Not in the types of ssh2; no event reports the size before a channel is open.
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
