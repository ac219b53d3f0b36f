import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import { FileFailed, type ChannelFiles, type FileEntry } from '@svc/contract/channel';
import { describeEntry, encodeAttributes, readAttributes } from './sftp-attributes.ts';
import {
  encodePacket,
  MAX_PACKET_BYTES,
  PacketReader,
  REQUEST,
  SftpProtocolError,
  splitPackets,
} from './sftp-packet.ts';
import { serveSftp } from './sftp-session.ts';

async function* of(...chunks: readonly Uint8Array[]): AsyncGenerator<Buffer> {
  for (const chunk of chunks) yield Buffer.from(chunk);
}

/** Sends SFTP requests about files that do not exist. */
async function converse(packets: readonly Uint8Array[]): Promise<readonly Buffer[]> {
  const missing = () => Promise.reject(new FileFailed('stat: No such file or directory', 'ENOENT'));
  const files = new Proxy({}, { get: () => missing }) as ChannelFiles;
  const answers: Buffer[] = [];
  const write = async (packet: Buffer) => void answers.push(await Promise.resolve(packet));
  await serveSftp(files, '/home', { input: of(...packets), write });
  return answers;
}

const INIT = encodePacket(REQUEST.init, [3]);

test('packets are found however the bytes are cut', async () => {
  const bodies = fc.array(fc.uint8Array({ maxLength: 50 }), { maxLength: 8 });
  const property = fc.asyncProperty(bodies, fc.integer({ min: 1, max: 20 }), async (contents, size) => {
    const bytes = Buffer.concat(contents.map((raw) => encodePacket(7, [{ raw }])));
    const cuts = Array.from({ length: Math.ceil(bytes.length / size) }, (_, index) =>
      bytes.subarray(index * size, (index + 1) * size),
    );
    const found = await Array.fromAsync(splitPackets(of(...cuts)));
    assert.deepEqual(
      found.map((packet) => [...packet.subarray(1)]),
      contents.map((content) => [...content]),
    );
  });
  await fc.assert(property, { numRuns: 100 });
});

test('a packet that is empty or too long ends the session before it is read', async () => {
  for (const length of [0, MAX_PACKET_BYTES + 1, 0xffffffff]) {
    const head = Buffer.alloc(4);
    head.writeUInt32BE(length);
    await assert.rejects(Array.fromAsync(splitPackets(of(head))), SftpProtocolError);
  }
});

test('arbitrary bytes of a client are answered or end the session', async () => {
  const bodies = fc.array(fc.tuple(fc.nat(255), fc.uint8Array({ maxLength: 60 })), { maxLength: 5 });
  const property = fc.asyncProperty(bodies, async (requests) => {
    const packets = requests.map(([type, raw]) => encodePacket(type, [1, { raw }]));
    try {
      const answers = await converse([INIT, ...packets]);
      assert.equal(answers.length, 1 + packets.length);
    } catch (error) {
      assert.ok(error instanceof SftpProtocolError, String(error));
    }
  });
  await fc.assert(property, { numRuns: 300 });
});

test('requests are answered under their own numbers, and unknown ones as unsupported', async () => {
  const answers = await converse([INIT, encodePacket(REQUEST.stat, [77, '/x']), encodePacket(99, [78])]);
  const read = answers.slice(1).map((packet) => {
    const reader = new PacketReader(packet, 4);
    return { type: reader.byte(), id: reader.uint32(), status: reader.uint32() };
  });
  assert.deepEqual(
    read.toSorted((a, b) => a.id - b.id),
    [
      { type: 101, id: 77, status: 2 },
      { type: 101, id: 78, status: 8 },
    ],
  );
  await assert.rejects(converse([encodePacket(REQUEST.stat, [1, '/x'])]), SftpProtocolError);
});

test('attributes survive the wire, and lines look as those of ls', () => {
  const entry: FileEntry = {
    path: '/a',
    kind: 'file',
    size: 2 ** 40,
    mode: 0o104755,
    uid: 1000,
    gid: 7,
    modifiedSeconds: 1_700_000_000,
    accessedSeconds: 1,
  };
  const packet = encodePacket(1, encodeAttributes(entry));
  assert.deepEqual(readAttributes(new PacketReader(packet, 5)), {
    size: 2 ** 40,
    uid: 1000,
    gid: 7,
    mode: 0o4755,
    atime: 1,
    mtime: 1_700_000_000,
  });
  const line = describeEntry(entry, 'a', 1_700_000_000_000);
  assert.match(line, /^-rwsr-xr-x +1 1000 +7 +1099511627776 Nov 14 22:13 a$/);
  assert.match(describeEntry(entry, 'a', 1_800_000_000_000), /Nov 14 {2}2023 a$/);
});
