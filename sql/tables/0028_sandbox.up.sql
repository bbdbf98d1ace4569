-- The sandbox: an installation without real customers, whose clock can be moved.
ALTER TABLE reclaim.installation
  ADD COLUMN sandbox boolean NOT NULL DEFAULT false, -- RECLAIM_SANDBOX; clock_shift is changed only where it is true
  ADD COLUMN clock_moved_at timestamptz;             -- in real time, when clock_shift was 0 for the last time; null: it is
UPDATE reclaim.installation SET sandbox = demo WHERE demo;
