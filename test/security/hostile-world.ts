import { once } from 'node:events';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { Client, Sandbox } from '@svc/sdk';
import { createLocalSignInLink, createLocalToken } from '@svc/server/local';
import { TestProvider } from '../../packages/server/src/testing/identity-provider.ts';
import { importPython } from '../engine/interpreter-images.ts';
import type { TestServer } from '../e2e/start-server.ts';
import { LINES, nameHostile, sendHostile, type Caller, type Known, type Sent } from './hostile-values.ts';

/** The server needs this to ask the provider and the receiver, which are on this machine. */
export const HOSTILE_ARGS = ['--allow-private-targets'];

/** An organization in which everything that takes a text has a hostile one. */
export interface HostileWorld {
  readonly client: Client;
  readonly box: Sandbox;
  readonly known: Known;
  /** What became of each text. */
  readonly sent: readonly Sent[];
}

/** As much as a header takes. */
const AGENT = 'agent\u009B8m\u00AD';

/** Names that code in a sandbox asks for: bytes of every kind, words that look like ours, and as long as names are. */
const ASKED = [
  'x\n\u001B[2J\u001B]0;owned\u0007.example',
  'a\u202Egpj\u200B.example',
  'a.example is allowed by rule 0.example',
  'b\u00FCcher.example',
  'xn--bcher-kva.example',
  `${'n'.repeat(63)}.${'n'.repeat(63)}.${'n'.repeat(63)}.example`,
];
const ASK = `import json, socket, sys
server = next(line.split()[1] for line in open("/etc/resolv.conf") if line.startswith("nameserver"))
for name in json.loads(sys.argv[1]):
    labels = b"".join(bytes([len(part)]) + part for part in (label.encode() for label in name.split(".")))
    question = bytes([0, 1, 1, 0, 0, 1, 0, 0, 0, 0, 0, 0]) + labels + bytes([0, 0, 1, 0, 1])
    socket.socket(socket.AF_INET, socket.SOCK_DGRAM).sendto(question, (server, 53))
`;

export async function makeHostileWorld(
  server: TestServer,
  { slug, owner }: { readonly slug: string; readonly owner: string },
  undo: AsyncDisposableStack,
): Promise<HostileWorld> {
  await importPython(server.engine);
  const provider = undo.adopt(await TestProvider.start(), (started) => started.close());
  const { secret: token } = await createLocalToken({ dataFolder: server.engine.folder }, owner, {
    name: 't',
  });
  const client = new Client({ apiUrl: server.url, apiKey: token, organization: slug });
  const box = await Sandbox.create({ client, name: 'box', image: 'python', labels: { team: LINES } });
  const volume = await client.call('volumes.create', { body: { name: 'data' } });
  await client.call('volumeFiles.mkdir', { params: { id: volume.id }, body: { path: 'first' } });
  const webhook = await client.call('webhooks.create', {
    body: { url: await startReceiver(undo), event_types: ['volume_created'] },
  });
  const known = {
    sandbox_id: box.id,
    volume_id: volume.id,
    webhook_id: webhook.id,
    issuer_url: provider.issuer,
  };
  await signInHostile(server, owner);
  const caller: Caller = { url: server.url, token, slug };
  const sent = [...(await nameHostile(caller, known)), ...(await sendHostile(caller, known))];
  await box.exec('python3', ['-c', ASK, JSON.stringify(ASKED)]);
  // Their source is shown once they were started, also after a failed start.
  for await (const made of Sandbox.list({ client }))
    if (made.status === 'created') await made.start().catch(() => undefined);
  return { client, box, known, sent };
}

/** Browsers say what they are, and are listed by it. */
async function signInHostile({ url, engine }: TestServer, owner: string): Promise<void> {
  const { secret } = await createLocalSignInLink({ dataFolder: engine.folder }, owner, '1h');
  const headers = { 'content-type': 'application/json', 'user-agent': AGENT };
  const body = JSON.stringify({ token: secret });
  const { status } = await fetch(`${url}/v1/session/link`, { method: 'POST', headers, body });
  if (status !== 200) throw new Error(`no session, but ${status}`);
}

/** Of webhooks: it takes nothing, and says so in lines that look like ours. */
async function startReceiver(undo: AsyncDisposableStack): Promise<string> {
  const receiver = createServer((_request, response) => void response.writeHead(500).end(LINES));
  await once(receiver.listen(0, '127.0.0.1'), 'listening');
  undo.defer(() => receiver.close().closeAllConnections());
  return `http://127.0.0.1:${(receiver.address() as AddressInfo).port}/`;
}
