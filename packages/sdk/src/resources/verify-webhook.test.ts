import assert from 'node:assert/strict';
import { createHmac, randomBytes } from 'node:crypto';
import { test } from 'node:test';
import { SvcError } from '../svc-error.ts';
import { verifyWebhook } from './verify-webhook.ts';

const KEY = randomBytes(32);
const SECRET = `whsec_${KEY.toString('base64')}`;
const OTHER = `whsec_${randomBytes(32).toString('base64')}`;
const BODY = '{"type":"webhook_test","timestamp":"2026-01-01T00:00:00.000Z","data":{"webhook_id":"ü"}}';
const NOW = new Date('2026-01-01T00:00:00Z');

function headersAt(at: Date, body = BODY, key = KEY): Record<string, string> {
  const seconds = String(Math.floor(at.getTime() / 1000));
  const signature = createHmac('sha256', key).update(`msg_1.${seconds}.${body}`).digest('base64');
  return { 'webhook-id': 'msg_1', 'webhook-timestamp': seconds, 'webhook-signature': `v1,${signature}` };
}

const HEADERS = headersAt(NOW);

async function isTaken(
  ...[secret, headers, body, options]: Parameters<typeof verifyWebhook>
): Promise<boolean> {
  try {
    await verifyWebhook(secret, headers, body, { now: NOW, ...options });
    return true;
  } catch (error) {
    assert.ok(SvcError.is(error, 'forbidden'), String(error));
    assert.ok(!error.message.includes(SECRET) && !error.message.includes(HEADERS['webhook-signature'] ?? ''));
    return false;
  }
}

test('messages signed with the secret are accepted, with both kinds of headers, as text and as bytes', async () => {
  const message = await verifyWebhook(SECRET, HEADERS, BODY, { now: NOW });
  assert.deepEqual(message, JSON.parse(BODY));
  assert.ok(await isTaken(SECRET, new Headers(HEADERS), Buffer.from(BODY)));
  const signature = `v1,${'A'.repeat(43)}= v2,x ${HEADERS['webhook-signature']}`;
  assert.ok(await isTaken([OTHER, SECRET], { ...HEADERS, 'webhook-signature': signature }, BODY));
  // The example of https://github.com/standard-webhooks/standard-webhooks, of 2021.
  const known = {
    'webhook-id': 'msg_p5jXN8AQM9LWM0D4loKWxJek',
    'webhook-timestamp': '1614265330',
    'webhook-signature': 'v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE=',
  };
  const now = new Date(1_614_265_330_000);
  assert.ok(await isTaken('whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw', known, '{"test": 2432232314}', { now }));
});

test('messages with another secret, content or time are refused', async () => {
  assert.equal(await isTaken(OTHER, HEADERS, BODY), false);
  assert.equal(await isTaken(SECRET, HEADERS, `${BODY} `), false);
  assert.equal(await isTaken(SECRET, { ...HEADERS, 'webhook-id': 'msg_2' }, BODY), false);
  const later = String(Number(HEADERS['webhook-timestamp']) + 1);
  assert.equal(await isTaken(SECRET, { ...HEADERS, 'webhook-timestamp': later }, BODY), false);
  for (const name of Object.keys(HEADERS)) {
    assert.equal(await isTaken(SECRET, { ...HEADERS, [name]: undefined }, BODY), false, name);
    assert.equal(await isTaken(SECRET, { ...HEADERS, [name]: '' }, BODY), false, name);
  }
  for (const signature of ['v1,', 'v1,!', 'x', HEADERS['webhook-signature']?.replace('v1,', 'v2,') ?? ''])
    assert.equal(await isTaken(SECRET, { ...HEADERS, 'webhook-signature': signature }, BODY), false);
});

test('clocks may differ by five minutes, either way', async () => {
  const at = (seconds: number) => headersAt(new Date(NOW.getTime() + seconds * 1000));
  for (const seconds of [-300, -60, 60, 300])
    assert.ok(await isTaken(SECRET, at(seconds), BODY), String(seconds));
  for (const seconds of [-301, 301, 86_400]) assert.equal(await isTaken(SECRET, at(seconds), BODY), false);
  assert.ok(await isTaken(SECRET, at(-600), BODY, { toleranceSecs: 600 }));
  const endless = { ...HEADERS, 'webhook-timestamp': 'NaN' };
  assert.equal(await isTaken(SECRET, endless, BODY, { toleranceSecs: Number.POSITIVE_INFINITY }), false);
  await assert.rejects(verifyWebhook('', HEADERS, BODY, { now: NOW }), /begins with whsec_/);
});
