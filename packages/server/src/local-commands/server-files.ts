export const STORE = 'store.db';
export const SECRETS_KEY = 'secrets.key';
/** What of the server's folder cannot be made anew, in the order in which `saveServerFiles` writes it. */
export const SERVER_FILES: readonly string[] = [STORE, SECRETS_KEY, 'signing.key', 'ssh_host_ed25519_key'];

/** In front of each file: its length. This one says that there is none. */
export const NO_FILE = 2n ** 64n - 1n;
export const LENGTH_BYTES = 8;
