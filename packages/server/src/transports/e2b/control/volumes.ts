import { PlatformError } from '@svc/contract';
import type { Volume } from '@svc/contract/rest';
import { fromE2bId, toE2bId } from '../wire/e2b-address.ts';
import type { E2bCall } from '../wire/e2b-call.ts';
import { E2bRefusal } from '../wire/e2b-failure.ts';
import type { ControlRoutes, TokenOf } from './control-route.ts';
import { textOf } from './new-sandbox.ts';

/** E2B's volumes have no capacity; ours has one where the organization's quota wants it. */
const CAPACITY_GIB = 10;

export const volumeRoutes: ControlRoutes = {
  'POST /volumes': async (_parts, { call, tokenOf, body }) => {
    const name = textOf(body['name'], 'name');
    const volume = await call.rest('volumes.create', { body: { name, capacity_gib: CAPACITY_GIB } });
    return { status: 201, body: withToken(tokenOf, volume) };
  },
  'GET /volumes': async (_parts, { call }) => {
    const volumes = await call.rest('volumes.list', {});
    const body = volumes.flatMap(({ id, name }) => (name === null ? [] : [{ volumeID: toE2bId(id), name }]));
    return { status: 200, body };
  },
  'GET /volumes/:id': async (_parts, { call, tokenOf, params }) => ({
    status: 200,
    body: withToken(tokenOf, await requireVolume(call, params['id'])),
  }),
  'DELETE /volumes/:id': async (_parts, { call, params }) => {
    const { id } = await requireVolume(call, params['id']);
    await call.rest('volumes.remove', { params: { id } });
    return { status: 204 };
  },
};

function withToken(tokenOf: TokenOf, { id, name }: Volume): object {
  return { volumeID: toE2bId(id), name, token: tokenOf({ kind: 'volume', id }) };
}

async function requireVolume(call: E2bCall, text: string | undefined): Promise<Volume> {
  const id = fromE2bId(text);
  if (id === undefined) throw new E2bRefusal(404, `There is no volume ${text}`);
  const volume = await call.rest('volumes.get', { params: { id } });
  if (volume.status === 'active') return volume;
  throw new PlatformError('volume_not_found', `There is no volume ${text}`);
}
