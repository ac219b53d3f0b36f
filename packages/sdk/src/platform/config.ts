/** What the environment says about the server; an empty variable counts as none. */
export interface Environment {
  readonly apiUrl?: string;
  readonly apiKey?: string;
  readonly organization?: string;
}

/** What Node is told for its own requests: https://nodejs.org/api/cli.html#node_use_env_proxy1 */
export function usesProxy(): boolean {
  return process.env['NODE_USE_ENV_PROXY'] === '1' || process.execArgv.includes('--use-env-proxy');
}

/** The address also goes by an older name. */
export function readEnvironment(): Environment {
  const { SVC_API_URL, SVC_SERVER_URL, SVC_API_KEY: apiKey, SVC_ORG: organization } = process.env;
  // An empty one is none, which `??` would not see.
  const apiUrl = SVC_API_URL || SVC_SERVER_URL;
  return {
    ...(apiUrl ? { apiUrl } : {}),
    ...(apiKey ? { apiKey } : {}),
    ...(organization ? { organization } : {}),
  };
}
