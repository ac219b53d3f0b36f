import type { Logger } from 'pino';
import type { CodeRunner } from './code/code-runner.ts';
import type { Authenticate } from './access/authenticate.ts';
import type { SignSession } from './access/sessions.ts';
import type { Identify } from './access/principal.ts';
import type { OrchestratorPorts } from './orchestrator/ports.ts';
import type { PreviewPlace } from './handlers/previews/preview-place.ts';
import type { RestSettings } from './rest-settings.ts';
import type { Sealer } from './secrets/sealer.ts';
import type { SshPlace } from './handlers/server/capabilities.ts';
import type { Database } from './store/database.ts';
import type { Tracer } from './tracing/tracer.ts';
import type { ChannelSettings } from './transports/channel/register-channel.ts';
import type { DashboardBuild } from './transports/dashboard/dashboard-build.ts';
import type { HttpLimits } from './transports/http/http-limits.ts';
import type { McpExtras } from './transports/mcp/create-mcp-server.ts';

export interface ServerOptions {
  readonly host: string;
  readonly port: number;
  readonly allowedHosts: readonly string[];
  readonly corsOrigins: readonly string[];
  readonly limits: HttpLimits;
  readonly maxConcurrentCalls: number;
  /** Null: no previews. */
  readonly previews: PreviewPlace | null;
  /** Whether ports of sandboxes that E2B's clients make without a word about them are open to all who know the id. */
  readonly areE2bPortsPublic: boolean;
  /** Per organization or user; null: no limit. */
  readonly requestsPerMinute: number | null;
}

export interface ServerParts extends OrchestratorPorts {
  readonly options: ServerOptions;
  readonly database: Database;
  readonly codeRunner: CodeRunner;
  readonly authenticate: Authenticate;
  readonly identify: Identify;
  /** Null: development mode, without credentials. */
  readonly signSession: SignSession | null;
  readonly sealer: Sealer;
  readonly restSettings: RestSettings;
  readonly channelSettings?: Partial<ChannelSettings>;
  /** Where the SSH gateway is, once it listens; absent: there is none. */
  readonly ssh?: () => SshPlace | null;
  /** Interval between checks whether WebSockets of previews may stay open. */
  readonly previewRecheckMs?: number;
  /** No other server uses the store. */
  readonly isAlone?: boolean;
  /** Absent: only the API, and a page that says how to begin. */
  readonly dashboard?: DashboardBuild;
  readonly logger: Logger;
  /** Absent: requests are not traced. */
  readonly tracer?: Tracer;
  /** Absent: MCP offers only our own tools and prompts. */
  readonly mcpExtras?: McpExtras;
}
