import type { TestContext } from 'node:test';
import { encodeVolumePath } from '@svc/contract/rest';
import { FakeVolumeStore } from './fake-volume-store.ts';
import { startTestServer } from './test-server.ts';
import { DEFAULT_LIMITS, type HttpLimits } from '../transports/http/http-limits.ts';

/** A server with one volume, and its file operations as a client would call them. */
export async function startWithVolume(t: TestContext, limits: Partial<HttpLimits> = {}) {
  const volumeStore = new FakeVolumeStore();
  const server = await startTestServer(t, { volumeStore, limits: { ...DEFAULT_LIMITS, ...limits } });
  const { body: volume } = await server.rest('POST', '/volumes', { body: { name: 'data', capacity_gib: 1 } });
  const files = `/volumes/${volume.id}/files`;
  const at = (path: string, more: Record<string, string> = {}) => ({
    headers: { 'x-svc-file-path': encodeVolumePath(path), ...more },
  });
  const put = (path: string, body: Uint8Array | string) =>
    server.rest('PUT', `${files}/content`, { ...at(path), body });
  const get = (path: string) => server.rest('GET', `${files}/content`, at(path));
  const list = async (path: string): Promise<string[]> =>
    (await server.rest('GET', files, at(path))).body.entries.map((entry: { path: string }) => entry.path);
  const events = async () =>
    (await server.database.selectFrom('events').selectAll().orderBy('sequence').execute())
      .filter(({ event_type: type }) => type !== 'volume_created')
      .map((event) => [event.event_type, JSON.parse(event.payload) as Record<string, unknown>]);
  return { server, volumeStore, volume, files, at, put, get, list, events };
}
