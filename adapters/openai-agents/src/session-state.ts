import type { SandboxSessionState } from '@openai/agents-core/sandbox';
import {
  deserializeManifest,
  isRecord,
  readOptionalStringRecord,
  readString,
  rehydratePersistedEnvironmentForRuntime,
  sanitizeEnvironmentForPersistence,
  serializeManifestRecord,
} from '@openai/agents-core/sandbox/internal';

/** What a session is found again by. */
export interface SvcSessionState extends SandboxSessionState {
  sandboxId: string;
  /** Of the manifest; every command gets it. */
  environment: Record<string, string>;
}

/** Without the values of the environment that the manifest calls ephemeral. */
export function serializeState(state: SvcSessionState): Record<string, unknown> {
  return {
    sandboxId: state.sandboxId,
    manifest: serializeManifestRecord(state.manifest),
    environment: sanitizeEnvironmentForPersistence(state),
    workspaceReady: true,
  };
}

export async function deserializeState(given: Record<string, unknown>): Promise<SvcSessionState> {
  const record = given['manifest'];
  const manifest = deserializeManifest(isRecord(record) ? record : undefined);
  const kept = readOptionalStringRecord(given['environment']);
  return {
    sandboxId: readString(given, 'sandboxId'),
    manifest,
    environment: await rehydratePersistedEnvironmentForRuntime(manifest, kept),
    workspaceReady: true,
  };
}
