import { ChannelError, FileFailed, type ChannelFiles } from '@svc/contract/channel';
import { SftpHandles } from './sftp-handles.ts';
import {
  ANSWER,
  encodePacket,
  PacketReader,
  REQUEST,
  SFTP_VERSION,
  SftpProtocolError,
  splitPackets,
  STATUS,
} from './sftp-packet.ts';
import { EXTENSIONS, status, WORKS, type Answer, type SftpTarget } from './sftp-requests.ts';

/** Maximum number of concurrent requests: keeps the sandbox busy and bounds the memory of a session. */
const MAX_AT_WORK = 32;

const STATUS_OF_ERRNO: Readonly<Record<string, number>> = {
  ENOENT: STATUS.noSuchFile,
  ENOTDIR: STATUS.noSuchFile,
  EACCES: STATUS.denied,
  EPERM: STATUS.denied,
  EROFS: STATUS.denied,
};

/**
 * Serves SFTP with the files of a sandbox until the client ends. Requests run concurrently up to the limit; a request
 * counts until the client has received its answer.
 * @throws SftpProtocolError when the input is not SFTP
 */
export async function serveSftp(
  files: ChannelFiles,
  home: string,
  client: {
    readonly input: AsyncIterable<Buffer>;
    readonly write: (packet: Buffer) => Promise<void>;
  },
): Promise<void> {
  const handles = new SftpHandles((handle) => files.closeHandle(handle));
  const target: SftpTarget = { files, handles, home };
  const atWork = new Set<Promise<void>>();
  let failure: Error | undefined;
  let isGreeted = false;
  for await (const packet of splitPackets(client.input)) {
    if (failure !== undefined) throw failure;
    if (!isGreeted) {
      await client.write(greet(packet));
      isGreeted = true;
      continue;
    }
    while (atWork.size >= MAX_AT_WORK) await Promise.race(atWork);
    const work = answer(target, packet)
      .then((reply) => client.write(reply))
      .catch((error: unknown) => void (failure ??= error as Error))
      .finally(() => atWork.delete(work));
    atWork.add(work);
  }
  await Promise.all(atWork);
  if (failure !== undefined) throw failure;
}

function greet(packet: Buffer): Buffer {
  const reader = new PacketReader(packet);
  if (reader.byte() !== REQUEST.init) throw new SftpProtocolError('the first packet is no INIT');
  const extensions = Object.keys(EXTENSIONS).flatMap((name) => [name, '1']);
  return encodePacket(ANSWER.version, [SFTP_VERSION, ...extensions]);
}

async function answer(target: SftpTarget, packet: Buffer): Promise<Buffer> {
  const reader = new PacketReader(packet);
  const type = reader.byte();
  const id = reader.uint32();
  const { type: answerType, fields } = await work(target, type, reader);
  return encodePacket(answerType, [id, ...fields]);
}

async function work(target: SftpTarget, type: number, reader: PacketReader): Promise<Answer> {
  const run = WORKS[type];
  if (run === undefined) return status(STATUS.unsupported, 'this request is not supported');
  try {
    return await run(target, reader);
  } catch (error) {
    if (error instanceof FileFailed) {
      return status(STATUS_OF_ERRNO[error.errnoName ?? ''] ?? STATUS.failure, error.message);
    }
    // The sandbox refused this call, or ended; in the latter case the next write of the session fails too.
    if (error instanceof ChannelError) return status(STATUS.failure, error.message);
    throw error;
  }
}
