interface CredentialRow {
  id: string;
  name: string;
  /** SHA-256 of the secret, which is not stored. */
  hash: string;
  /** The last 8 characters of the secret, shown so that users recognize it. */
  suffix: string;
  created_by: string | null;
  created_at: string;
  expires_at: string | null;
  revoked_at: string | null;
  last_used_at: string | null;
}

export interface ApiKeyRow extends CredentialRow {
  organization_id: string;
}

/** Personal access tokens. */
export interface TokenRow extends CredentialRow {
  user_id: string;
}

/** A public key with which a user reaches the sandboxes of their organizations over SSH. */
export interface SshKeyRow {
  id: string;
  user_id: string;
  name: string;
  /** `<type> <base64>`, without the comment. */
  public_key: string;
  /** `SHA256:<base64>`, as OpenSSH shows it. */
  fingerprint: string;
  created_at: string;
  last_used_at: string | null;
}

/** A token that opens one port of one sandbox to browsers. */
export interface PreviewTokenRow {
  id: string;
  organization_id: string;
  sandbox_id: string;
  port: number;
  /** SHA-256 of the token, which is not stored. For a public preview: of a random token that was discarded. */
  hash: string;
  /** The last 8 characters of the token; empty for a public preview. */
  suffix: string;
  created_at: string;
  expires_at: string | null;
  revoked_at: string | null;
  /** 1: the port opens without a token. */
  is_public: number;
}

export interface RegistryRow {
  id: string;
  organization_id: string;
  registry_host: string;
  username: string;
  /** Sealed. */
  password: string;
  created_at: string;
  updated_at: string;
}

/** A secret of an organization. */
export interface SecretRow {
  id: string;
  organization_id: string;
  name: string;
  /** Sealed. */
  value: string;
  /** JSON. */
  allowed_hosts: string;
  /** JSON. */
  upstream_ca_cert: string;
  created_at: string;
  updated_at: string;
}
