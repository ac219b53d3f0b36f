/** What the environment says about the server; an empty variable counts as none. */
export function readEnvironment(): { readonly apiUrl?: string; readonly apiKey?: string } {
  const { SVC_API_URL: apiUrl, SVC_API_KEY: apiKey } = process.env;
  return { ...(apiUrl ? { apiUrl } : {}), ...(apiKey ? { apiKey } : {}) };
}
