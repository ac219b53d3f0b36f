/** The server settings of the environment; an empty variable counts as absent. */
export interface Environment {
  readonly apiUrl?: string;
  readonly apiKey?: string;
  readonly organization?: string;
}

/** Whether Node uses the proxy of the environment: https://nodejs.org/api/cli.html#node_use_env_proxy1 */
export function usesProxy(): boolean {
  return process.env['NODE_USE_ENV_PROXY'] === '1' || process.execArgv.includes('--use-env-proxy');
}

/** The variables for the address; the second is its older name. */
export function readEnvironment(): Environment {
  const { SVC_API_URL, SVC_SERVER_URL, SVC_API_KEY: apiKey, SVC_ORG: organization } = process.env;
  // An empty variable counts as absent, which `??` does not cover.
  const apiUrl = SVC_API_URL || SVC_SERVER_URL;
  return {
    ...(apiUrl ? { apiUrl } : {}),
    ...(apiKey ? { apiKey } : {}),
    ...(organization ? { organization } : {}),
  };
}
