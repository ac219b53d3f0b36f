const MIB = 1024 * 1024;

/** Milliseconds. */
export async function timed(work: () => Promise<unknown>): Promise<number> {
  const begun = performance.now();
  await work();
  return performance.now() - begun;
}

/** `work` returns the number of bytes; fewer than expected is an error, not a slow run. */
export async function mibPerSecond(mib: number, work: () => Promise<number>): Promise<number> {
  const begun = performance.now();
  const bytes = await work();
  const seconds = (performance.now() - begun) / 1000;
  if (bytes !== mib * MIB) throw new Error(`${bytes} bytes instead of ${mib} MiB`);
  return mib / seconds;
}

/** Arguments of `dd` that write this much. */
export function ddArgs(mib: number): string[] {
  return ['if=/dev/zero', 'bs=1M', `count=${mib}`];
}

export async function countBytes(stream: AsyncIterable<Uint8Array>): Promise<number> {
  let bytes = 0;
  for await (const chunk of stream) bytes += chunk.length;
  return bytes;
}

/** The size of `chunk` must divide it. */
export async function* zeros(mib: number, chunk: Uint8Array): AsyncGenerator<Uint8Array> {
  for (let sent = 0; sent < mib * MIB; sent += chunk.length) yield chunk;
}
