import type { TSchema } from 'typebox';
import { Mount, Patch } from '../spec/mounts.ts';
import { NetworkPolicy, NetworkRequest } from '../spec/network.ts';
import { Confirmation, MessageResponse } from './fields.ts';
import { Snapshot, SnapshotOperation } from './snapshots.ts';
import { CreateSandboxRequest, Sandbox, SandboxVolumeMount, SnapshotLocation } from './sandbox-fields.ts';
import { SandboxSpecView } from './spec-view.ts';
import { VolumeFileInfo } from './volume-files.ts';
import { Volume, VolumeMetrics } from './volumes.ts';

/** Schemas that documents and clients know by name. */
export const COMPONENTS = {
  Confirmation,
  CreateSandboxRequest,
  MessageResponse,
  Mount,
  Network: NetworkRequest,
  NetworkPolicy,
  Patch,
  Sandbox,
  SandboxSpecView,
  SandboxVolumeMount,
  Snapshot,
  SnapshotOperation,
  SnapshotLocation,
  Volume,
  VolumeFileInfo,
  VolumeMetrics,
} as const satisfies Record<string, TSchema>;
