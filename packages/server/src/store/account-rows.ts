export interface UserRow {
  id: string;
  /** In lower case. */
  email: string;
  display_name: string | null;
  avatar_url: string | null;
  created_at: string;
  updated_at: string;
}

export interface PasswordRow {
  user_id: string;
  /** Includes the salt and the cost parameters. */
  hash: string;
  changed_at: string;
}

export interface SecondFactorRow {
  user_id: string;
  /** Sealed. */
  secret: string;
  /** Null: the secret was shown, and the user has not confirmed it with a code yet. */
  confirmed_at: string | null;
  /** The time step of the last code that was used; a code is accepted once. */
  last_step: number;
  /** JSON: hashes of the recovery codes, each accepted once in place of the device. */
  recovery_hashes: string;
}

export interface SessionRow {
  id: string;
  user_id: string;
  has_second_factor: number;
  /** Null: the session is not limited to one organization. */
  organization_id: string | null;
  user_agent: string;
  source_address: string | null;
  created_at: string;
  expires_at: string;
}

export interface SignInLinkRow {
  hash: string;
  user_id: string;
  expires_at: string;
}

export interface OwnerLinkRow {
  hash: string;
  expires_at: string;
}

/** `subject` is the account or the client address of failed sign-in attempts. */
export interface SignInFailureRow {
  subject: string;
  count: number;
  last_at: string;
}

export interface IdentityProviderRow {
  organization_id: string;
  issuer: string;
  client_id: string;
  /** Sealed; null: the provider needs no client secret. */
  client_secret: string | null;
  /** JSON. */
  email_domains: string;
  created_at: string;
  updated_at: string;
}

/** Links the `subject` of an identity provider to a user. */
export interface ProviderIdentityRow {
  organization_id: string;
  issuer: string;
  subject: string;
  user_id: string;
}
