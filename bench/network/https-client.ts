/**
 * Asks an HTTPS server for something short, again and again over one connection, and prints what each took in milliseconds:
 * `https-client.ts HOST ADDRESS PORT CA-FILE COUNT RESOLVER`. With a resolver it asks that for the name first, as programs do.
 */
import { Resolver } from 'node:dns/promises';
import { once } from 'node:events';
import { readFileSync } from 'node:fs';
import { Agent, get } from 'node:https';
import { buffer } from 'node:stream/consumers';
import type { IncomingMessage } from 'node:http';

const WARM_UP = 100;
const [host = '', address = '', port = '', file = '', count = '', nameserver] = process.argv.slice(2);
if (nameserver !== undefined) {
  const resolver = new Resolver();
  resolver.setServers([nameserver]);
  await resolver.resolve4(host);
}
const agent = new Agent({ keepAlive: true, maxSockets: 1, ca: readFileSync(file), servername: host });
const headers = { host: `${host}:${port}`, authorization: 'Bearer $MSB_API_KEY' };

for (let asked = 0; asked < Number(count) + WARM_UP; asked++) {
  const begun = performance.now();
  const request = get({ agent, host: address, port, path: '/hello', headers });
  const [response] = (await once(request, 'response')) as [IncomingMessage];
  const body = await buffer(response);
  if (response.statusCode !== 200 || body.length === 0) throw new Error(`answered ${response.statusCode}`);
  if (asked >= WARM_UP) console.log((performance.now() - begun).toFixed(3));
}
agent.destroy();
