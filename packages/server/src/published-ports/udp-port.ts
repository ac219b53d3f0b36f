import type { RemoteInfo, Socket } from 'node:dgram';
import { once } from 'node:events';
import { bindUdp } from './bind-udp.ts';
import type { OpenPort, PortTarget } from './open-port.ts';
import { UdpClients } from './udp-clients.ts';

const MAX_UNSENT_BYTES = 4 * 1024 * 1024;

/** Each client that sends something gets a socket of its own in the sandbox. @throws the error of binding */
export async function openUdpPort(
  place: { readonly address: string; readonly port: number },
  target: PortTarget,
): Promise<OpenPort> {
  const socket = await bindUdp(place);
  const clients = new UdpClients(target, (datagram, client) => send(socket, datagram, client));
  socket.on('message', (datagram, { address, port }: RemoteInfo) => {
    if (target.mayEnter(address)) clients.take({ address, port }, datagram);
  });
  // An ICMP error for a client that went away does not affect the others.
  socket.on('error', (error) =>
    target.logger.debug({ sandboxId: target.sandboxId, err: error }, 'a datagram was refused'),
  );
  return {
    close: async () => {
      clients.close();
      const closed = once(socket, 'close');
      socket.close();
      await closed;
    },
  };
}

function send(
  socket: Socket,
  datagram: Uint8Array,
  { address, port }: { readonly address: string; readonly port: number },
): void {
  // Datagrams over the limit are dropped: the sandbox may send more than the host can.
  if (socket.getSendQueueSize() > MAX_UNSENT_BYTES) return;
  socket.send(datagram, port, address, () => undefined);
}
