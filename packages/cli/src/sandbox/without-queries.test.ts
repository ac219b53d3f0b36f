import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { DetachedOutput } from '@svc/sdk';
import { withoutQueries } from './without-queries.ts';

async function shown(pieces: readonly string[], replayed: number): Promise<string> {
  async function* output(): AsyncGenerator<DetachedOutput> {
    let offset = 0;
    for (const piece of pieces) {
      const data = Buffer.from(piece);
      yield { kind: 'data', stream: 'stdout', offset, data };
      offset += data.length;
    }
    yield { kind: 'dropped', stream: 'stderr', from: 0, to: 1 };
    await Promise.resolve();
  }
  let text = '';
  for await (const event of withoutQueries(output(), replayed))
    text += event.kind === 'data' ? Buffer.from(event.data).toString() : '…';
  return text;
}

test('terminal queries are removed from replayed output, and no other text', async () => {
  const questions = [
    '\u001b[6n',
    '\u001b[5n',
    '\u001b[?6n',
    '\u001b[c',
    '\u001b[>0c',
    '\u001bZ',
    '\u001b[?2026$p',
    '\u001b[18t',
    '\u001b]11;?\u0007',
    '\u001b]4;1;?\u001b\\',
    '\u001bP$qm\u001b\\',
    '\u001bP+q544e\u001b\\',
  ];
  for (const question of questions)
    assert.equal(await shown([`grüße ${question}> `], 1000), 'grüße > …', JSON.stringify(question));
  const kept = '\u001b[31mred\u001b[0m \u001b[2J\u001b[10;5H\u001b]0;title\u0007\u001b[22;0t\u001b[?25l';
  assert.equal(await shown([kept], 1000), `${kept}…`);
});

test('terminal queries in new output stay', async () => {
  const [old, now] = ['old \u001b[6n', 'new \u001b[6n'];
  assert.equal(await shown([old, now], old.length), `old ${now}…`);
  assert.equal(await shown([old + now], old.length), `old ${now}…`);
});
