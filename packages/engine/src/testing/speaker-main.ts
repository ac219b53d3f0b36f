/** Runs inside a sandbox's network namespace; see speaker.ts. */
import { X509Certificate } from 'node:crypto';
import { createSocket } from 'node:dgram';
import { once } from 'node:events';
import { connect as connectTcp } from 'node:net';
import type { Duplex } from 'node:stream';
import { connect as connectTls } from 'node:tls';
import { encodeQuery } from './dns-samples.ts';
import type { speak, Heard, Speech } from './speaker.ts';

const ASK_MS = 20_000;
const { nameserver, names, speeches, certificate, patienceMs } = JSON.parse(
  process.argv[2] ?? '',
) as Parameters<typeof speak>[1];
const outside = new X509Certificate(certificate).publicKey;

for (const name of names) await ask(name);
const heard = await Promise.all(
  speeches.map(async (speech): Promise<Heard> => await say(speech).catch(() => 'closed')),
);
process.stdout.write(JSON.stringify(heard), () => process.exit(0));

async function ask(name: string): Promise<void> {
  const socket = createSocket('udp4');
  socket.connect(53, nameserver);
  await once(socket, 'connect');
  socket.send(encodeQuery(name));
  await once(socket, 'message', { signal: AbortSignal.timeout(ASK_MS) });
  socket.close();
}

async function say(speech: Speech): Promise<Heard> {
  const { kind, address, port, serverName, host, request } = speech;
  const signal = AbortSignal.timeout(patienceMs);
  const line = kind === 'line' ? 'hello there' : `${request} HTTP/1.1`;
  const head = kind === 'line' ? `${line}\r\n` : `${line}\r\n${host === null ? '' : `Host: ${host}\r\n`}\r\n`;
  if (kind !== 'tls') {
    await answerTo(connectTcp(port, address), head, signal, line);
    return 'carried';
  }
  const name = serverName === null ? {} : { servername: serverName };
  const socket = connectTls({ host: address, port, rejectUnauthorized: false, ...name });
  await once(socket, 'secureConnect', { signal });
  const shown = socket.getPeerX509Certificate();
  await answerTo(socket, head, signal, line);
  return shown?.verify(outside) === true ? 'carried' : 'read';
}

/** Rejects unless the server has received exactly that. */
async function answerTo(socket: Duplex, head: string, signal: AbortSignal, line: string): Promise<void> {
  let answer = '';
  socket.on('data', (data: Buffer) => (answer += data.toString('latin1')));
  socket.write(head);
  await once(socket, 'end', { signal });
  if (answer.startsWith('HTTP/1.1 200 ') && answer.endsWith(`\r\n\r\nheard ${line}`)) return;
  throw new Error(`Not answered: ${answer}`);
}
