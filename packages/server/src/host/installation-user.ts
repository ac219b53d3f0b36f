import { createHash } from 'node:crypto';
import { dirname, resolve } from 'node:path';
import type { Identity } from './drop-privileges.ts';

/**
 * Below the ids of sandboxes and of the engine's own programs, above those of users and packages. No user of the host has a name here.
 */
const FIRST_ID = 0x0f00_0000;
const IDS = 0x00f0_0000;

/**
 * The user of an installation, unless `--run-as` names another: each data folder has its own, so that a program of one installation
 * reaches no socket and no file of another on the same host.
 */
export function installationUser(dataFolder: string): Identity {
  const digest = createHash('sha256').update(resolve(dataFolder)).digest();
  const id = FIRST_ID + (digest.readUInt32BE() % IDS);
  return { uid: id, gid: id };
}

/** A server that uses the engine of another data folder belongs to that installation. */
export function serverUser(place: {
  readonly dataFolder: string;
  readonly engineSocket: string;
  readonly isEngineExternal: boolean;
}): Identity {
  return installationUser(place.isEngineExternal ? dirname(place.engineSocket) : place.dataFolder);
}
