import type { DetachedOutput } from '@svc/sdk';

/**
 * What programs ask a terminal: where its cursor is (CSI 6 n), what it is (CSI c, ESC Z), how it is set (CSI $ p, DCS $ q, DCS + q), how
 * large it is (CSI 14 t and others) and which colours it has (OSC 11 ; ?).
 */
const QUESTIONS =
  // oxlint-disable-next-line no-control-regex -- these are what is looked for
  /\u001b(?:\[[?>=]?[\d;]*[nc]|\[\??[\d;]*\$p|\[(?:1[1345689]|2[01])t|Z|\](?:4;\d+|1\d);\?(?:\u0007|\u001b\\)|P[$+]q[^\u001b]*\u001b\\)/g;

/**
 * The same output, of which the first `replayed` bytes were written for somebody else: what was asked in them was answered then. Asked
 * again, the terminal would answer again, into a program that does not wait for it or into the shell that is back by then.
 */
export async function* withoutQuestions(
  output: AsyncIterable<DetachedOutput>,
  replayed: number,
): AsyncGenerator<DetachedOutput> {
  for await (const event of output) {
    if (event.kind !== 'data' || event.stream !== 'stdout' || event.offset >= replayed) {
      yield event;
      continue;
    }
    const old = replayed - event.offset;
    const text = Buffer.from(event.data.subarray(0, old)).toString('latin1').replaceAll(QUESTIONS, '');
    yield { ...event, data: Buffer.concat([Buffer.from(text, 'latin1'), event.data.subarray(old)]) };
  }
}
