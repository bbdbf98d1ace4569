/** A refusal of the server, or a failure on the way to it. */
export class ReclaimError extends Error {
  name: 'ReclaimError';
  /**
   * The server's code: `ORPHAN_CLEANUP_002`, `WRONG_PASSWORD`, …; `NETWORK` if there was no answer, and
   * `UNEXPECTED_ANSWER` if the answer was not one of Reclaim's, for example a proxy's.
   */
  code: string;
  /** The HTTP status; 0 if there was no answer. */
  status: number;
  /** Seconds after which it may be tried again, if the server named them. */
  retryAfter?: number;
  /** The id under which operators find the request. */
  correlationId: string;
  /** The whole answer: `details` of malformed fields, `blockers`, `deletion_effective_at`, …. */
  body?: unknown;
}

/** What Reclaim uses of a client of supabase-js. */
export interface SupabaseLike {
  functions: { invoke(name: string, options?: any): Promise<{ data: any; error: any }> };
  auth: {
    getSession(): Promise<{ data: { session: { access_token: string; user: { id: string } } | null } }>;
    signOut(options?: { scope?: 'global' | 'local' | 'others' }): Promise<unknown>;
  };
}

interface CommonOptions {
  /** The caller's access token, or a function that returns the current one. By default that of the session of `supabase`. */
  token?: string | (() => string | null | undefined | Promise<string | null | undefined>);
  /** An API key, instead of a token. Never give one to a browser. */
  apiKey?: string;
  /** The customer that is meant, for callers who have several. */
  customer?: string;
  /** How often a request is repeated at most; 2 by default, 0 for never. */
  retries?: number;
  /** The longest wait before a repetition, in seconds; 10 by default. If the server asks for more, the error comes at once. */
  maxWait?: number;
  /** Instead of the global `fetch`. */
  fetch?: typeof fetch;
}

export type ReclaimOptions = CommonOptions &
  (
    | {
        /** Where the Reclaim server is: all requests go there. */
        url: string;
        /** Its session has the token, and is ended after a deletion. */
        supabase?: SupabaseLike;
      }
    | {
        /** The two functions are called by its functions client, all else at the project's URL. */
        supabase: SupabaseLike;
        url?: undefined;
      }
  );

export interface CallOptions {
  signal?: AbortSignal;
  /** A UUID for the logs of the server; by default a new one. */
  correlationId?: string;
}

export interface AccountOptions extends CallOptions {
  /** The customer that is meant, for callers who have several. */
  customer?: string;
}

export interface EmailStatus {
  status: 'not_registered' | 'registered_unverified' | 'registered_verified';
  verifiedAt: string | null;
  lastSignInAt: string | null;
  /** null if that could not be found out in time. */
  hasCompanyData: boolean | null;
  isOrphaned: boolean | null;
  correlationId: string;
}

export interface CodeSent {
  step: 'code-sent';
  message: string;
  correlationId: string;
  expiresAt: string;
}

export interface UserDeleted {
  step: 'user-deleted';
  message: string;
  correlationId: string;
  deletedUserId: string;
  orphanClassification: 'case_1_1' | 'case_1_2';
}

/** Accounts with a password prove the wish with it, all others with the phrase or a mailed code. */
export type Proof = ({ password: string } | { confirmation_phrase: 'DELETE' } | { code: string }) & {
  /** Without grace; not with the phrase. */
  immediate?: boolean;
};

export interface Customer {
  id: string;
  name: string;
  detail: string;
  email: string;
  phone_number: string;
  address: string;
  webhook_method: string;
  webhook_uri: string;
  billing_account_id: string | null;
  status: 'active' | 'frozen' | 'deleted';
  tm_deletion_scheduled: string | null;
  tm_create: string | null;
  tm_update: string | null;
  tm_delete: string | null;
  /** While frozen: when the deletion becomes final. */
  deletion_effective_at?: string | null;
  /** While frozen; only `owner` and `sql` can be recovered by the owner. */
  frozen_by?: 'owner' | 'admin' | 'sql' | null;
  freeze?: { api: string | null; calls: string | null; billing: string | null };
}

export interface Reclaim {
  /** How far the registration of an address got. */
  probe(email: string, options?: CallOptions): Promise<EmailStatus>;
  /** Mails a code to the address of a registration that never finished. */
  requestCode(email: string, options?: CallOptions): Promise<CodeSent>;
  /** Deletes that registration. If it was the session's own user, the session ends here. */
  validateAndCleanup(email: string, code: string, options?: CallOptions): Promise<UserDeleted>;
  /** Schedules the deletion of the caller's account. The session lasts, for `recover`, unless the account is deleted at once. */
  unregister(proof: Proof, options?: AccountOptions): Promise<Customer>;
  /** Takes the deletion back. */
  recover(options?: AccountOptions): Promise<Customer>;
  /** The caller's account, the oldest of several unless `customer` names one; with an API key it must. */
  account(options?: AccountOptions): Promise<Customer>;
  /** What is kept of the account, as a ZIP archive. */
  export(options?: AccountOptions): Promise<Blob>;
}

export function createReclaim(options: ReclaimOptions): Reclaim;
