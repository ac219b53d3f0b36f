import type { DetachedOutput } from '@svc/sdk';

/**
 * Terminal queries of programs: cursor position (CSI 6 n), device type (CSI c, ESC Z), settings (CSI $ p, DCS $ q, DCS + q), size
 * (CSI 14 t and others) and colours (OSC 11 ; ?).
 */
const QUERIES =
  // oxlint-disable-next-line no-control-regex -- these are what is looked for
  /\u001b(?:\[[?>=]?[\d;]*[nc]|\[\??[\d;]*\$p|\[(?:1[1345689]|2[01])t|Z|\](?:4;\d+|1\d);\?(?:\u0007|\u001b\\)|P[$+]q[^\u001b]*\u001b\\)/g;

/**
 * Removes terminal queries from the first `replayed` bytes, which were written for an earlier client and answered then. Repeated,
 * the terminal would answer again, into a program that does not expect it or into the user's shell.
 */
export async function* withoutQueries(
  output: AsyncIterable<DetachedOutput>,
  replayed: number,
): AsyncGenerator<DetachedOutput> {
  for await (const event of output) {
    if (event.kind !== 'data' || event.stream !== 'stdout' || event.offset >= replayed) {
      yield event;
      continue;
    }
    const old = replayed - event.offset;
    const text = Buffer.from(event.data.subarray(0, old)).toString('latin1').replaceAll(QUERIES, '');
    yield { ...event, data: Buffer.concat([Buffer.from(text, 'latin1'), event.data.subarray(old)]) };
  }
}
