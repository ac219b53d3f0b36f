export const STORE = 'store.db';
export const SECRETS_KEY = 'secrets.key';
/** The files of the server's folder that cannot be recreated, in the order in which `saveServerFiles` writes them. */
export const SERVER_FILES: readonly string[] = [STORE, SECRETS_KEY, 'signing.key', 'ssh_host_ed25519_key'];

/** The length in front of each file; this value means that there is none. */
export const NO_FILE = 2n ** 64n - 1n;
export const LENGTH_BYTES = 8;
