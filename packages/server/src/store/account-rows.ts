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
  /** With its salt and costs. */
  hash: string;
  changed_at: string;
}

export interface SecondFactorRow {
  user_id: string;
  /** Sealed. */
  secret: string;
  /** Null: shown, but nobody has proven to have it. */
  confirmed_at: string | null;
  /** The time step of the last code that was used: each works once. */
  last_step: number;
  /** JSON: of the codes that work once without the device. */
  recovery_hashes: string;
}

export interface SessionRow {
  id: string;
  user_id: string;
  has_second_factor: number;
  /** Null: for all that the user may. */
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

/** `subject` is an account or an address that somebody tried to sign in as or from. */
export interface SignInFailureRow {
  subject: string;
  count: number;
  last_at: string;
}

export interface IdentityProviderRow {
  organization_id: string;
  issuer: string;
  client_id: string;
  /** Sealed; null: the provider asks for none. */
  client_secret: string | null;
  /** JSON. */
  email_domains: string;
  created_at: string;
  updated_at: string;
}

/** Whom a provider knows by `subject`. */
export interface ProviderIdentityRow {
  organization_id: string;
  issuer: string;
  subject: string;
  user_id: string;
}
