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

/** `subject` is an account or an address that somebody tried to sign in as or from. */
export interface SignInFailureRow {
  subject: string;
  count: number;
  last_at: string;
}
