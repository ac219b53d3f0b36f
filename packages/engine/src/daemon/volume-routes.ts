import { PlatformError } from '@svc/contract/errors';
import type { Kit } from '../sandboxes/kit.ts';
import { fields, readId, required } from './fields.ts';
import type { Call, Routes } from './http-server.ts';
import { sendBytes } from './streams.ts';

export function volumeRoutes({ volumes }: Pick<Kit, 'volumes'>): Routes {
  const id = (call: Call) => call.params['id'] ?? '';
  const path = (call: Call) => call.query.get('path') ?? '';
  const done = {};
  return {
    'GET /volumes': () => volumes.list(),
    'POST /volumes': async (call) => {
      const given = fields(await call.json());
      return await volumes.create(readId(given), readCapacity(given), call.signal);
    },
    'PATCH /volumes/:id': async (call) => {
      return await volumes.resize(id(call), readCapacity(fields(await call.json())), call.signal);
    },
    'DELETE /volumes/:id': async (call) => {
      await volumes.remove(id(call));
      return done;
    },
    'GET /volumes/:id/usage': (call) => volumes.usage(id(call)),
    'GET /volumes/:id/list': (call) => volumes.files(id(call)).list(path(call), call.signal),
    'GET /volumes/:id/stat': (call) => volumes.files(id(call)).stat(path(call), call.signal),
    'GET /volumes/:id/content': async (call) => {
      await sendBytes(call.response, await volumes.files(id(call)).read(path(call), call.signal));
      return undefined;
    },
    'PUT /volumes/:id/content': async (call) => {
      await volumes.files(id(call)).write(path(call), wholeBody(call), call.signal);
      return done;
    },
    'DELETE /volumes/:id/content': async (call) => {
      const recursive = call.query.get('recursive') === 'true';
      await volumes.files(id(call)).remove(path(call), { recursive }, call.signal);
      return done;
    },
    'POST /volumes/:id/mkdir': async (call) => {
      await volumes.files(id(call)).mkdir(required(fields(await call.json()), 'path', 'string'), call.signal);
      return done;
    },
    'POST /volumes/:id/copy': async (call) => {
      const { from, to } = readPair(await call.json());
      await volumes.files(id(call)).copy(from, to, call.signal);
      return done;
    },
    'POST /volumes/:id/rename': async (call) => {
      const { from, to } = readPair(await call.json());
      await volumes.files(id(call)).rename(from, to, call.signal);
      return done;
    },
  };
}

/** The body of an upload; a truncated one is an error, so that it never replaces the old file. */
async function* wholeBody(call: Call): AsyncGenerator<Uint8Array> {
  for await (const chunk of call.request as AsyncIterable<Uint8Array>) yield chunk;
  if (!call.request.complete) throw new PlatformError('invalid_request', 'the upload ended too early');
}

function readCapacity(given: Readonly<Record<string, unknown>>): number {
  const capacityMib = required(given, 'capacityMib', 'number');
  if (Number.isInteger(capacityMib) && capacityMib >= 1) return capacityMib;
  throw new PlatformError('invalid_request', 'capacityMib: must be a whole number of at least 1', {
    details: { field: 'capacityMib' },
  });
}

function readPair(body: unknown): { from: string; to: string } {
  const given = fields(body);
  return { from: required(given, 'from', 'string'), to: required(given, 'to', 'string') };
}
