/**
 * Simulates the internet in its own network namespace: on TCP 8080 it tells callers their address and
 * then echoes their input, on UDP 9090 it prints the received packets, on port 53 of the address given as argument it resolves a few names
 * (those with `dual` in them to IPv6 too) and prints the queries.
 */
import { createSocket } from 'node:dgram';
import { once } from 'node:events';
import { createServer } from 'node:net';
import { addressRecord, encodeAnswer, TYPE } from './dns-samples.ts';
import { startSampleResolver } from './sample-resolver.ts';

const [address = '', publicAddress = '', privateAddress = '', publicIpv6Address = ''] = process.argv.slice(2);
const print = (line: string) => process.stdout.write(`${line}\n`);

const text = { type: TYPE.txt, data: Buffer.alloc(200, 1) };
await startSampleResolver(
  address,
  (query) => {
    print(`asked for ${query.toString('latin1', 13).replaceAll(/[^ -~]+/g, '.')}`);
    // The type stands before the class, at the end of the question.
    const isForIpv6 = query.readUInt16BE(query.length - 4) === TYPE.aaaa;
    if (query.includes('dual') && isForIpv6) return [encodeAnswer(query, [addressRecord(publicIpv6Address)])];
    if (query.includes('dual')) return [encodeAnswer(query, [addressRecord(publicAddress)])];
    if (query.includes('public')) return [encodeAnswer(query, [addressRecord(publicAddress)])];
    if (query.includes('rebind')) return [encodeAnswer(query, [addressRecord(privateAddress)])];
    if (query.includes('large'))
      return [encodeAnswer(query, [text, text, text, addressRecord(publicAddress)])];
    return [encodeAnswer(query, [], { flags: 0x8183 })];
  },
  53,
);

const server = createServer((socket) => {
  socket.on('error', () => undefined);
  socket.write(`you are ${socket.remoteAddress?.replace('::ffff:', '')}\n`);
  socket.pipe(socket);
});
server.listen(8080, '::');
await once(server, 'listening');

const datagrams = createSocket('udp6');
datagrams.on('message', (message, sender) =>
  print(`${message.toString()} from ${sender.address.replace('::ffff:', '')}`),
);
datagrams.bind(9090);
await once(datagrams, 'listening');
print('ready');
