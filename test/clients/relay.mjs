/**
 * Runs in a network namespace of its own: listens there on the ports that it is told over stdin (one a line) and passes connections
 * on to the unix socket of the same name in the folder given, whose other end is outside.
 */
import { connect, createServer } from 'node:net';
import { join } from 'node:path';
import { createInterface } from 'node:readline';

const [folder] = process.argv.slice(2);
for await (const port of createInterface({ input: process.stdin })) {
  const server = createServer((near) => pass(near, connect(join(folder, port))));
  await new Promise((resolve) => void server.listen(Number(port), '127.0.0.1', resolve));
  process.stdout.write(`${port}\n`);
}
process.exit(0);

function pass(near, far) {
  near.on('error', () => far.destroy()).on('close', () => far.destroy());
  far.on('error', () => near.destroy()).on('close', () => near.destroy());
  near.pipe(far).pipe(near);
}
