/** What the environment says about the server, which also goes by an older name; an empty variable counts as none. */
export function readEnvironment(): { readonly apiUrl?: string; readonly apiKey?: string } {
  const { SVC_API_URL, SVC_SERVER_URL, SVC_API_KEY: apiKey } = process.env;
  // An empty one is none, which `??` would not see.
  const apiUrl = SVC_API_URL || SVC_SERVER_URL;
  return { ...(apiUrl ? { apiUrl } : {}), ...(apiKey ? { apiKey } : {}) };
}
