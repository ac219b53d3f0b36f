import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { DueWebhook } from '../store/webhook-deliveries.ts';
import { hasRoom } from './delivery-shares.ts';

/** As many as they get, each organization with sixteen webhooks that never answer. */
function holdAll(organizations: number): DueWebhook[] {
  const webhooks = Array.from({ length: organizations * 16 }, (_, index) => ({
    id: `w${index}`,
    organizationId: `o${index % organizations}`,
  }));
  const underWay: DueWebhook[] = [];
  for (let isMore = true; isMore;) {
    const begun = webhooks.filter((webhook) => {
      const isBegun = hasRoom(underWay, webhook);
      if (isBegun) underWay.push(webhook);
      return isBegun;
    });
    isMore = begun.length > 0;
  }
  return underWay;
}

test('deliveries of one webhook, and of one organization, leave most places to others', () => {
  const webhook = { id: 'w', organizationId: 'o' };
  const times = (count: number) => Array.from({ length: count }, () => webhook);
  assert.ok(hasRoom(times(3), webhook));
  assert.ok(!hasRoom(times(4), webhook));
  assert.equal(holdAll(1).length, 16);
});

test('however many organizations hold all they get, another one is served', () => {
  for (const organizations of [1, 8, 16, 17, 64, 250]) {
    const underWay = holdAll(organizations);
    assert.ok(underWay.length >= organizations, 'each of them is served');
    assert.ok(hasRoom(underWay, { id: 'new', organizationId: 'new' }), `beside ${organizations}`);
  }
});
