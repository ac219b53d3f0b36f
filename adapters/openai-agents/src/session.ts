import type { Editor, ToolOutputImage } from '@openai/agents-core';
import {
  normalizeExposedPort,
  SandboxArchiveError,
  SandboxExposedPortUnavailableError,
  type ExecCommandArgs,
  type ExposedPortEndpoint,
  type ListDirectoryArgs,
  type Manifest,
  type MaterializeEntryArgs,
  type ReadFileArgs,
  type SandboxArchiveLimits,
  type SandboxDirectoryEntry,
  type SandboxExecResult,
  type SandboxSession,
  type ViewImageArgs,
  type WorkspaceArchiveData,
  type WorkspaceArchiveOptions,
  type WriteStdinArgs,
} from '@openai/agents-core/sandbox';
import {
  assertViewImageByteLength,
  formatExecResponse,
  imageOutputFromBytes,
  MAX_VIEW_IMAGE_BYTES,
  mergeManifestDelta,
  mergeManifestEntryDelta,
  toUint8Array,
} from '@openai/agents-core/sandbox/internal';
import { SvcError, type Sandbox } from '@svc/sdk';
import { ARCHIVE_LIMIT, requireWithin } from './archive.ts';
import { editorOf } from './editor.ts';
import { Files } from './files.ts';
import { Workspace } from './manifest.ts';
import { Processes } from './processes.ts';
import type { SvcSessionState } from './session-state.ts';

/** A running sandbox with a workspace. Closing the session removes the sandbox. */
export class SvcSandboxSession implements SandboxSession<SvcSessionState> {
  state: SvcSessionState;
  readonly sandbox: Sandbox;
  readonly #ports: readonly number[];
  readonly #files: Files;
  readonly #workspace: Workspace;
  readonly #processes: Processes;
  #archiveLimits: SandboxArchiveLimits | null = null;

  constructor(sandbox: Sandbox, state: SvcSessionState, ports: readonly number[]) {
    this.sandbox = sandbox;
    this.state = state;
    this.#ports = ports;
    this.#files = new Files(sandbox, () => this.state.manifest);
    this.#workspace = new Workspace(sandbox, this.#files);
    this.#processes = new Processes(sandbox);
  }

  /** Makes the workspace of a new sandbox. */
  async prepare(): Promise<void> {
    await this.#workspace.makeRoot(this.state.manifest.root);
    await this.#workspace.apply(this.state.manifest);
    this.state.workspaceReady = true;
  }

  async running(): Promise<boolean> {
    return (await this.sandbox.refresh()).status === 'running';
  }

  async start(): Promise<void> {
    if (!(await this.running())) await this.sandbox.start();
  }

  supportsPty(): boolean {
    return true;
  }

  async exec(args: ExecCommandArgs): Promise<SandboxExecResult> {
    const cwd = this.#files.resolve(args.workdir);
    return await this.#processes.exec(args, { cwd, env: this.state.environment });
  }

  async execCommand(args: ExecCommandArgs): Promise<string> {
    return formatExecResponse(await this.exec(args));
  }

  async writeStdin(args: WriteStdinArgs): Promise<string> {
    return await this.#processes.writeStdin(args);
  }

  createEditor(runAs?: string): Editor {
    return editorOf(this.#files, runAs);
  }

  async viewImage({ path, runAs }: ViewImageArgs): Promise<ToolOutputImage> {
    const bytes = await this.#files.read(path, runAs, MAX_VIEW_IMAGE_BYTES + 1);
    assertViewImageByteLength(path, bytes.byteLength);
    return imageOutputFromBytes(path, bytes);
  }

  async readFile({ path, runAs, maxBytes }: ReadFileArgs): Promise<Uint8Array> {
    return await this.#files.read(path, runAs, maxBytes);
  }

  async listDir({ path, runAs }: ListDirectoryArgs): Promise<SandboxDirectoryEntry[]> {
    return await this.#files.list(path, runAs);
  }

  async pathExists(path: string, runAs?: string): Promise<boolean> {
    return await this.#files.is('-e', path, runAs);
  }

  async directoryExists(path: string, runAs?: string): Promise<boolean> {
    return (await this.#files.is('-d', path, runAs)) && (await this.#files.is('-x', path, runAs));
  }

  async materializeEntry({ path, entry, runAs }: MaterializeEntryArgs): Promise<void> {
    await this.#workspace.put(path, entry, this.state.manifest, runAs);
    this.state.manifest = mergeManifestEntryDelta(this.state.manifest, path, entry);
  }

  async applyManifest(manifest: Manifest, runAs?: string): Promise<void> {
    await this.#workspace.apply(manifest, runAs);
    this.state.environment = { ...this.state.environment, ...(await manifest.resolveEnvironment()) };
    this.state.manifest = mergeManifestDelta(this.state.manifest, manifest);
  }

  /** A tar archive of the workspace without what the manifest calls ephemeral. */
  async persistWorkspace(): Promise<Uint8Array> {
    const { manifest } = this.state;
    const excluded = [...manifest.ephemeralPersistencePaths()].map((path) => `--exclude=./${path}`);
    const words = ['-C', manifest.root, ...excluded, '-cf', '-', '.'];
    const made = await this.sandbox.exec('tar', words, { maxOutputBytes: ARCHIVE_LIMIT });
    if (made.isSuccess && made.truncated.length === 0) return made.stdout;
    const said = made.truncated.length === 0 ? made.errorText().trim() : `more than ${ARCHIVE_LIMIT} bytes`;
    throw new SandboxArchiveError(`The workspace could not be archived: ${said}`);
  }

  async hydrateWorkspace(data: WorkspaceArchiveData, options: WorkspaceArchiveOptions = {}): Promise<void> {
    const archive = await toUint8Array(data);
    requireWithin(archive, options.archiveLimits === undefined ? this.#archiveLimits : options.archiveLimits);
    const words = ['-C', this.state.manifest.root, '-xf', '-'];
    const done = await this.sandbox.exec('tar', words, { stdin: archive });
    if (!done.isSuccess)
      throw new SandboxArchiveError(`The workspace could not be restored: ${done.errorText().trim()}`);
  }

  /** Those of archives that a call gives none for. */
  setArchiveLimits(limits?: SandboxArchiveLimits | null): void {
    this.#archiveLimits = limits ?? null;
  }

  /** Not kept in the state: an address can have a token in it. */
  async resolveExposedPort(port: number): Promise<ExposedPortEndpoint> {
    const wanted = normalizeExposedPort(port);
    if (!this.#ports.includes(wanted)) {
      const message = `Port ${wanted} is not exposed: name it in the option 'exposedPorts' of SvcSandboxClient`;
      throw new SandboxExposedPortUnavailableError(message, { port: wanted });
    }
    const { hostname, port: outer, protocol, search, href } = new URL(await this.sandbox.url(wanted));
    const tls = protocol === 'https:';
    const whole = outer === '' ? defaultPort(tls) : Number(outer);
    return { host: hostname, port: whole, tls, query: search.slice(1), url: href };
  }

  async close(): Promise<void> {
    await this.#processes.end();
    try {
      await this.sandbox.remove();
    } catch (error) {
      if (!SvcError.is(error, 'sandbox_not_found')) throw error;
    }
  }
}

function defaultPort(tls: boolean): number {
  return tls ? 443 : 80;
}
