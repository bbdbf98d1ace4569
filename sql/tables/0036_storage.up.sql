-- Objects of users in Supabase Storage take part in erasures: they are deleted through its API, since it refuses other deletions.
ALTER TABLE reclaim.cascade_participants
  DROP CONSTRAINT cascade_participants_kind_check,
  ADD CONSTRAINT cascade_participants_kind_check CHECK (kind IN ('table', 'remote', 'storage')),
  ADD COLUMN bucket text,
  ADD COLUMN prefix text, -- the folder of a user's objects, with {user} for its id and a slash at its end
  ADD CONSTRAINT cascade_participants_bucket_check CHECK ((kind = 'storage') = (bucket IS NOT NULL) AND (bucket IS NULL) = (prefix IS NULL));

-- Complete erasures for which the Storage API is to be asked again, since no query tells what came late.
CREATE TABLE reclaim.storage_checks (
  customer_id uuid NOT NULL,
  participant text NOT NULL,
  due_at timestamptz NOT NULL DEFAULT clock_timestamp(),
  PRIMARY KEY (customer_id, participant)
);
REVOKE ALL ON reclaim.storage_checks FROM PUBLIC;
