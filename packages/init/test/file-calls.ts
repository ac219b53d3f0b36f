import assert from 'node:assert/strict';
import type { Channel, Payload } from './channel.ts';

/** Runs one file operation that must succeed and returns its data. */
export async function fs(channel: Channel, variant: string, fields: Payload): Promise<unknown> {
  const { type, payload } = await channel.call('core.fs.request', { op: { [variant]: fields } });
  assert.deepEqual(
    [type, payload['ok'], payload['error']],
    ['core.fs.response', true, null],
    `${variant} ${JSON.stringify(fields)}`,
  );
  return payload['data'];
}

/** Runs one file operation that must fail and returns its error text. */
export async function fsError(channel: Channel, variant: string, fields: Payload): Promise<string> {
  const { payload } = await channel.call('core.fs.request', { op: { [variant]: fields } });
  assert.equal(payload['ok'], false, `${variant} ${JSON.stringify(fields)}`);
  return payload['error'] as string;
}

export async function open(channel: Channel, path: string, options: Payload): Promise<number> {
  return ((await fs(channel, 'OpenFile', { path, options })) as { Handle: number }).Handle;
}

/** Reads a path, or an open handle, to its end or for `len` bytes. */
export async function readAll(
  channel: Channel,
  from: string | number,
  offset = 0,
  len: number | null = null,
): Promise<Buffer> {
  const handle = typeof from === 'string' ? await open(channel, from, { read: true }) : from;
  const id = channel.newId();
  channel.send(id, 'core.fs.request', { op: { Read: { handle, offset, len } } });
  const end = await channel.takeType('core.fs.response', id);
  assert.equal(end.payload['ok'], true, String(end.payload['error']));
  const chunks = channel.frames
    .filter((frame) => frame.id === id)
    .map((frame) => frame.payload['data'] as Uint8Array);
  if (typeof from === 'string') await fs(channel, 'CloseHandle', { handle });
  return Buffer.concat(chunks);
}

/** Writes all bytes to a path (made or emptied first) or an open handle. */
export async function writeAll(
  channel: Channel,
  to: string | number,
  content: Buffer,
  offset = 0,
): Promise<void> {
  const handle =
    typeof to === 'string' ? await open(channel, to, { write: true, create: true, truncate: true }) : to;
  const id = channel.newId();
  channel.send(id, 'core.fs.request', { op: { Write: { handle, offset, len: content.length } } });
  for (let at = 0; at < content.length; at += 2_097_152) {
    channel.send(id, 'core.fs.data', { data: content.subarray(at, at + 2_097_152) });
  }
  channel.send(id, 'core.fs.data', { data: Buffer.alloc(0) });
  const end = await channel.takeType('core.fs.response', id);
  assert.equal(end.payload['ok'], true, String(end.payload['error']));
  await fs(channel, 'CloseHandle', { handle });
}
